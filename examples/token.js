import { createHmac } from 'node:crypto';

/** A JSON Web Token, HS256. A library does the same. */
export function signToken(claims, secret) {
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}
