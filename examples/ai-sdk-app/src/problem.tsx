/** Says what went wrong, and lets the user try again. */
export function Problem({ error, retry }: { error: Error; retry: () => void }) {
  return (
    <div className="problem" role="alert">
      <p>{wordsOf(error)}</p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

/** A rejected request has the gateway's problem document as its message. */
function wordsOf(error: Error): string {
  const { message } = error;
  // Thrown by `fetch`, in the words of the browser.
  if (error instanceof TypeError) return 'The server could not be reached.';
  try {
    const { detail } = JSON.parse(message);
    return typeof detail === 'string' ? detail : message;
  } catch {
    return message || 'Something went wrong.';
  }
}
