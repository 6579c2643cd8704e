/**
 * The y coordinates of the points of small order on Ed25519's curve, each in every form that fits in 255 bits: 0 and 1 also
 * as p and p + 1. Little-endian, in hex, without the sign of x.
 */
const SMALL_ORDER = new Set([
  // Order 4: y = 0.
  '0000000000000000000000000000000000000000000000000000000000000000',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  // Order 1: y = 1.
  '0100000000000000000000000000000000000000000000000000000000000000',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  // Order 2: y = -1.
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  // Order 8: the two square roots of a solution of d·y⁴ + 2·y² = 1.
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
]);

/** Whether 32 bytes encode a point of small order: as a key, or as the first half of a signature, it proves nothing. */
export function isSmallOrder(point: Uint8Array): boolean {
  const bytes = Array.from(point, (byte, index) => (index === 31 ? byte & 0x7f : byte));
  return SMALL_ORDER.has(bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(''));
}
