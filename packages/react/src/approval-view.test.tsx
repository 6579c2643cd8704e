// @vitest-environment happy-dom

import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { ApprovalView } from './approval-view.js';
import type { Approval } from './message.js';

afterEach(cleanup);

/** What the form of an approval offers, and the quiet words in it. */
function offered(given: Partial<Approval>): { buttons: string[]; words: string[] } {
  const approval: Approval = {
    id: 'appr_1',
    callId: 'call_1',
    runId: 'run_1',
    toolName: 'refund',
    state: 'requested',
    mayDecide: true,
    editable: true,
    expiresAt: '2030-01-01T00:10:00Z',
    ...given,
  };
  const { container } = render(<ApprovalView approval={approval} decide={async () => {}} />);
  screen.getByRole('group', { name: /refund/ });
  return {
    buttons: screen.queryAllByRole('button').map((button) => button.textContent ?? ''),
    words: [...container.querySelectorAll('.tg-muted, dd')].map((line) => line.textContent ?? ''),
  };
}

test('who may decide is offered to approve, to edit and to reject', () =>
  expect(offered({ input: { amount: 5 } })).toEqual({
    buttons: ['Approve', 'Edit', 'Reject'],
    words: ['5'],
  }));

test('nobody is offered an edit that the tool does not allow', () =>
  expect(offered({ input: { amount: 5 }, editable: false })).toEqual({
    buttons: ['Approve', 'Reject'],
    words: ['5'],
  }));

test('who may not decide reads what is asked, and that it waits for others', () => {
  const words = ['5', 'Waits for somebody who may decide'];
  const remember = 'until-revoked';
  expect(offered({ input: { amount: 5 }, mayDecide: false, remember })).toEqual({ buttons: [], words });
});

test('who may not decide is not told that they may, where the input is hidden', () =>
  expect(offered({ mayDecide: false })).toEqual({
    buttons: [],
    words: ['Waits for somebody who may decide'],
  }));
