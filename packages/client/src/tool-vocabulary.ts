/** Categories that have a name everywhere. A project may use words of its own beside them. */
export const ToolCategory = {
  CREATION: 'creation',
  EDUCATIONAL: 'educational',
  NAVIGATION: 'navigation',
  ASSESSMENT: 'assessment',
  UTILITY: 'utility',
} as const;

/** One of the named categories. */
export type ToolCategory = (typeof ToolCategory)[keyof typeof ToolCategory];

/** Permissions that have a name everywhere. A project may use words of its own beside them. */
export const Permission = {
  /** Reads what was said in the space. */
  READ_CONVERSATION: 'READ_CONVERSATION',
  /** Reads what is known of the person whom the run works for. */
  READ_PROFILE: 'READ_PROFILE',
  /** Creates or changes content. */
  WRITE_CONTENT: 'WRITE_CONTENT',
  /** Has something said aloud. */
  VOICE_OUTPUT: 'VOICE_OUTPUT',
  /** Reads and writes files. */
  FILE_ACCESS: 'FILE_ACCESS',
} as const;

/** One of the named permissions. */
export type Permission = (typeof Permission)[keyof typeof Permission];
