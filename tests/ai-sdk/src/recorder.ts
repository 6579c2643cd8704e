/** More requests than any conversation here needs: a client that reaches it would never stop. */
const REQUESTS_MAX = 12;

/** One request of a client and what came back. */
export interface Exchange {
  method: string;
  url: string;
  body: { messages?: Array<{ id: string; role: string }>; [member: string]: unknown };
  status?: number;
  headers?: Headers;
  /** What was read of the response so far. */
  text: string;
  /** The response was read to its end, or has none. */
  ended: boolean;
  /** Settles with `ended`, also when the connection breaks. */
  over: Promise<void>;
}

/** A `fetch` that keeps what goes through it, and refuses to go on for ever. */
export class Recorder {
  readonly exchanges: Exchange[] = [];
  readonly #headers: Record<string, string>;

  constructor(headers: Record<string, string>) {
    this.#headers = headers;
  }

  get posts(): Exchange[] {
    return this.exchanges.filter((exchange) => exchange.method === 'POST');
  }
  get gets(): Exchange[] {
    return this.exchanges.filter((exchange) => exchange.method === 'GET');
  }
  /** Chunks of all responses so far, in order. */
  get chunks(): Array<{ type: string; [member: string]: unknown }> {
    return this.exchanges.flatMap((exchange) => chunksOf(exchange.text));
  }

  readonly fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    if (this.exchanges.length >= REQUESTS_MAX) throw new Error('the client asks without end');
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const exchange: Exchange = {
      method: init.method ?? 'GET',
      url: String(url),
      body: typeof init.body === 'string' ? JSON.parse(init.body) : {},
      text: '',
      ended: false,
      over,
    };
    this.exchanges.push(exchange);
    const finish = (): void => {
      exchange.ended = true;
      end();
    };
    const headers = { ...this.#headers, ...Object.fromEntries(new Headers(init.headers)) };
    const response = await fetch(url, { ...init, headers }).catch((error) => {
      finish();
      throw error;
    });
    exchange.status = response.status;
    exchange.headers = response.headers;
    if (!response.body) {
      finish();
      return response;
    }
    return new Response(watched(response.body, exchange, finish), response);
  };
}

/** Passes a body on, and keeps its text. */
function watched(body: ReadableStream<Uint8Array>, exchange: Exchange, finish: () => void): ReadableStream {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          finish();
          controller.close();
        } else {
          exchange.text += decoder.decode(value, { stream: true });
          controller.enqueue(value);
        }
      } catch (error) {
        finish();
        controller.error(error);
      }
    },
    cancel(reason) {
      finish();
      return reader.cancel(reason);
    },
  });
}

export function chunksOf(text: string): Array<{ type: string; [member: string]: unknown }> {
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => JSON.parse(line.slice('data: '.length)));
}
