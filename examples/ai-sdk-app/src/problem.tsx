const NO_BODY = 'Failed to fetch the chat response.';

interface ProblemProps {
  /** What could not be done, as a sentence. */
  what?: string;
  error: Error;
  retry: () => void;
}

/** Says what went wrong, and lets the user try again. */
export function Problem({ what, error, retry }: ProblemProps) {
  return (
    <div className="problem" role="alert">
      <p>
        {what} {wordsOf(error)}
      </p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

/** A rejected request has the gateway's problem document as its message; a proxy without a gateway behind it has nothing. */
function wordsOf(error: Error): string {
  const { message } = error;
  // Thrown by `fetch` in the words of the browser, or by the AI SDK for an error without a body.
  if (error instanceof TypeError || message === '' || message === NO_BODY)
    return 'The server could not be reached.';
  try {
    const { detail } = JSON.parse(message);
    return typeof detail === 'string' ? sentence(detail) : message;
  } catch {
    return sentence(message);
  }
}

function sentence(words: string): string {
  const begun = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
