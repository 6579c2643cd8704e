import { expect, test } from 'vitest';
import { createErrorResult, returnedError, ToolErrorCode } from './tool-result.js';

test('an error result has its code, message and details', () => {
  const details = { field: 'topic', reason: 'too short' };
  const result = createErrorResult(
    'my_tool',
    ToolErrorCode.VALIDATION_FAILED,
    'Input validation failed',
    details,
  );
  expect(result).toEqual({
    success: false,
    toolId: 'my_tool',
    code: 'VALIDATION_FAILED',
    error: 'Input validation failed',
    details,
  });
  expect(returnedError(result)).toEqual({
    code: 'VALIDATION_FAILED',
    message: 'Input validation failed: {"field":"topic","reason":"too short"}',
  });
  expect(createErrorResult('my_tool', ToolErrorCode.EXECUTION_FAILED, 'Unknown error')).not.toHaveProperty(
    'details',
  );
});

test('only a result that says so is an error', () => {
  expect(returnedError({ success: false, error: 'Error message' })).toEqual({ message: 'Error message' });
  for (const result of [
    null,
    'no',
    { success: true, data: {} },
    { success: false },
    { success: false, error: '' },
    { error: 'x' },
    { success: 'false', error: 'x' },
  ])
    expect(returnedError(result)).toBeUndefined();
});
