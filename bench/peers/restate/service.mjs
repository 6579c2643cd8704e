// The bench's run as a Restate workflow: ask the model, wait for whoever executes the call, ask the model again.
import * as restate from '@restatedev/restate-sdk';

const [port, model] = process.argv.slice(2);

/** One step of the model, journalled as one value. */
async function ask(messages) {
  const answer = await fetch(`${model}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'stub', stream: true, messages }),
  });
  const chunks = (await answer.text())
    .split('\n')
    .filter(line => line.startsWith('data: {'))
    .map(line => JSON.parse(line.slice('data: '.length)).choices?.[0]?.delta ?? {});
  const text = chunks.map(delta => delta.content ?? '').join('');
  const pieces = chunks.flatMap(delta => delta.tool_calls ?? []);
  const call = pieces.length && {
    id: pieces.map(piece => piece.id ?? '').join(''),
    name: pieces.map(piece => piece.function?.name ?? '').join(''),
    arguments: pieces.map(piece => piece.function?.arguments ?? '').join(''),
  };
  return { text, call: call || null };
}

const bench = restate.workflow({
  name: 'bench',
  handlers: {
    run: async (context, { prompt }) => {
      const user = { role: 'user', content: prompt };
      const { call } = await context.run('model', () => ask([user]));
      await context.promise('call').resolve(call);
      const result = await context.promise('result');
      const asked = { role: 'assistant', content: null, tool_calls: [{ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } }] };
      const told = { role: 'tool', tool_call_id: call.id, content: JSON.stringify(result) };
      const { text } = await context.run('model', () => ask([user, asked, told]));
      return { text };
    },
    call: restate.handlers.workflow.shared(async context => await context.promise('call')),
    result: restate.handlers.workflow.shared(async (context, result) => {
      await context.promise('result').resolve(result);
      return true;
    }),
  },
});

restate.serve({ services: [bench], port: Number(port) });
