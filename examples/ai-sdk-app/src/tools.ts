/** Functions of this page that the agent may call. */
const tools = {
  paint_page: {
    description: 'Paints the page in a colour.',
    parameters: {
      type: 'object',
      properties: { color: { type: 'string', description: 'Any CSS colour.' } },
      required: ['color'],
    },
    execute({ color }: { color: string }): string {
      if (!CSS.supports('color', color)) throw new Error(`"${color}" is not a CSS colour`);
      document.documentElement.style.setProperty('--paint', color);
      return `The page is ${color} now.`;
    },
  },
  describe_page: {
    description: 'Tells how the page looks: its colour, its size, the preferences of its reader.',
    parameters: { type: 'object', properties: {} },
    execute(): object {
      return {
        paint: document.documentElement.style.getPropertyValue('--paint') || 'none',
        size: { width: innerWidth, height: innerHeight, pixelRatio: devicePixelRatio },
        prefers: {
          dark: matchMedia('(prefers-color-scheme: dark)').matches,
          languages: navigator.languages,
        },
        browser: navigator.userAgent,
      };
    },
  },
};

/** The same without their code: what the agent is told. */
export const clientTools: object[] = Object.entries(tools).map(([name, { execute: _, ...tool }]) => ({
  name,
  ...tool,
}));

/** Calls one. The gateway has checked the input against `parameters`. */
export async function runTool(name: string, input: unknown): Promise<unknown> {
  const tool = tools[name as keyof typeof tools];
  if (!tool) throw new Error(`this page has no ${name}`);
  return tool.execute(input as never);
}
