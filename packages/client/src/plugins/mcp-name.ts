const NAME_LENGTH_MAX = 64;
const HASH_LENGTH = 7;

/**
 * The name of a server's tool for the model: `mcp_<server>_<tool>`, in the characters and the length that
 * every vendor accepts. If something had to be cut, in the server's part first, a short hash of the whole
 * keeps it unique. Names are looked up, never split again.
 */
export function joinedName(server: string, tool: string): string {
  const clean = (text: string): string => text.replace(/[^A-Za-z0-9_-]/g, '_');
  const plain = `mcp_${clean(server)}_${clean(tool)}`;
  const unchanged = plain === `mcp_${server}_${tool}`;
  if (unchanged && plain.length <= NAME_LENGTH_MAX) return plain;
  const room = NAME_LENGTH_MAX - 'mcp___'.length - HASH_LENGTH;
  const serverPart = clean(server).slice(0, Math.max(1, room - tool.length));
  const toolPart = clean(tool).slice(0, room - serverPart.length);
  return `mcp_${serverPart}_${toolPart}_${hash(`${server}\n${tool}`)}`;
}

/** FNV-1a, 32 bits: short and the same everywhere; not for security. */
function hash(text: string): string {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) state = Math.imul(state ^ byte, 0x01000193) >>> 0;
  return state.toString(36).padStart(HASH_LENGTH, '0');
}
