import { ToolgateChat, ToolgateChatProvider } from '@toolgate/react';
import { renderToString } from 'react-dom/server';
import { expect, test } from 'vitest';

test('a server renders the empty chat and asks the gateway nothing', () => {
  const html = renderToString(
    <ToolgateChatProvider
      url="http://127.0.0.1:1"
      publicKey="pk_none"
      jwt="none"
      defaultSpaceId="space_none"
      tools={{ never: () => expect.unreachable() }}
    >
      <ToolgateChat welcome={<h2>Welcome</h2>} />
    </ToolgateChatProvider>,
  );
  expect(html).toContain('<h2>Welcome</h2>');
});
