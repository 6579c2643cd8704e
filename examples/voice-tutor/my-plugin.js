import { Permission, ToolCategory } from '@toolgate/client';

/** A tool that makes a worksheet: its definition goes to the gateway, its handler runs here. */
export const myPlugin = {
  id: 'my_tool',
  name: 'My Tool',
  description: 'Makes a worksheet on a topic.',
  category: ToolCategory.EDUCATIONAL,
  schema: {
    type: 'object',
    properties: {
      topic: { type: 'string', minLength: 1 },
      format: { type: 'string', enum: ['brief', 'detailed'] },
    },
    required: ['topic'],
  },

  /** Whoever listens says yes first, within five minutes. */
  approval: 'always',
  approvalTimeout: '5m',

  voicePrompt: {
    template: 'Creare un foglio su {topic}?',
    requiresContext: ['topic'],
    fallback: 'Creare un nuovo foglio?',
  },
  voiceFeedback: {
    template: 'Foglio su {topic} creato con {itemCount} elementi',
    requiresContext: ['topic', 'itemCount'],
    fallback: 'Foglio creato',
  },
  voiceEnabled: true,

  triggers: ['mio_tool', 'crea', 'foglio'],
  prerequisites: [],
  permissions: [Permission.WRITE_CONTENT, Permission.VOICE_OUTPUT],

  handler: async ({ topic, format = 'brief' }) => {
    const items = ['Definizione', 'Esempio', 'Esercizio', 'Soluzione', 'Approfondimento'];
    const kept = items.slice(0, format === 'brief' ? 3 : items.length);
    return { success: true, data: { topic, itemCount: kept.length, items: kept } };
  },
};
