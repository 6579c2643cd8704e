const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const tool = (name: string) => ({ name, description: `Runs ${name} in the page.`, parameters });

/** What the page can do, as the gateway is told. */
export const clientTools: object[] = [tool('weather'), tool('clock'), tool('broken')];

/** What the page did, as the test reads it. */
export const ran: string[] = [];

/** Does what the agent asks for. */
export async function run(name: string, input: unknown): Promise<unknown> {
  ran.push(name);
  document.body.dataset.ran = ran.join(' ');
  switch (name) {
    case 'weather':
      return { sky: 'sunny', in: (input as { city?: string }).city };
    case 'clock':
      return 'noon';
    default:
      throw new Error('no such thing in this page');
  }
}
