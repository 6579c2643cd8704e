/** Calls a handler of the caller's. Its errors are reported as those of any event handler, and break nothing here. */
export function callHandler(handler: (() => void) | undefined): void {
  try {
    handler?.();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
