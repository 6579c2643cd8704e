const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';
const RANDOM_LETTERS = 16;
const TIME_LETTERS = 10;

/** A new message id in the gateway's form: `msg_`, ten characters of time, sixteen random ones. */
export function newMessageId(): string {
  let time = '';
  for (let rest = Date.now(), i = 0; i < TIME_LETTERS; i++, rest = Math.floor(rest / 32)) {
    time = LETTERS.charAt(rest % 32) + time;
  }
  const chance = Array.from(
    crypto.getRandomValues(new Uint8Array(RANDOM_LETTERS)),
    (byte) => LETTERS[byte % 32],
  );
  return `msg_${time}${chance.join('')}`;
}
