/** A package that cannot be used, and where in it the problem is. */
export class PackageError extends Error {
  /** `PACKAGE_INVALID`, or the code of the rejection. */
  readonly code: string;
  /** JSON pointer to the value at fault; empty for the whole document. */
  readonly pointer: string;

  constructor(code: string, message: string, pointer = '') {
    super(pointer === '' ? message : `${pointer}: ${message}`);
    this.name = 'PackageError';
    this.code = code;
    this.pointer = pointer;
  }
}
