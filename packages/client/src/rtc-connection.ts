import type { Connection } from './connection.js';
import { CODES, ConnectionError } from './error.js';
import {
  type ChannelNotice,
  isNotice,
  readChannelMessage,
  type ToolDataChannelMessage,
} from './tool-message.js';
import type { RtcAnswer } from './wire.js';

/** Label of the one data channel. */
const LABEL = 'tools';
/** Longest time from the answer to the open channel. */
const OPEN_MS_MAX = 15_000;
/** Messages per second of a gateway that does not say how many it takes: its default. */
const MESSAGES_PER_SECOND = 20;

/** What one connection is opened with. */
export interface RtcConnectionOptions {
  path: string;
  after: number | undefined;
  signal: AbortSignal;
  configuration: RTCConfiguration | undefined;
  onMessage: (message: ToolDataChannelMessage) => void;
  onNotice: (notice: ChannelNotice) => void;
}

/** One open data channel, until it is cut. */
export class RtcConnection {
  readonly #peer: RTCPeerConnection;
  readonly #channel: RTCDataChannel;
  /** Resolves when the channel is cut, by whichever side. */
  readonly cut: Promise<void>;
  readonly #end: () => void;
  readonly #bytesMax: number;
  #messagesPerSecond = MESSAGES_PER_SECOND;

  private constructor(peer: RTCPeerConnection, channel: RTCDataChannel, bytesMax: number) {
    this.#peer = peer;
    this.#channel = channel;
    this.#bytesMax = bytesMax;
    let end = (): void => {};
    this.cut = new Promise((resolve) => {
      end = resolve;
    });
    this.#end = end;
    channel.addEventListener('close', end);
    peer.addEventListener('connectionstatechange', () => {
      // A cut costs nothing but a new connection from the cursor, so a doubtful one is not waited for.
      if (['disconnected', 'failed', 'closed'].includes(peer.connectionState)) end();
    });
  }

  /** Offers a channel to the gateway. Resolves when it is open and the gateway has begun to send events. */
  static async open(gateway: Connection, options: RtcConnectionOptions): Promise<RtcConnection> {
    if (typeof RTCPeerConnection === 'undefined') {
      const words = 'there is no RTCPeerConnection here; use spaces.subscribe, which needs no WebRTC';
      throw new ConnectionError(CODES.connection, words);
    }
    const peer = new RTCPeerConnection(options.configuration);
    try {
      const channel = peer.createDataChannel(LABEL);
      const ready = readyOf(channel, options);
      // Whoever is awaited below may fail first.
      ready.catch(() => {});
      await peer.setLocalDescription();
      const answer = await gateway.json<RtcAnswer>(options.path, {
        method: 'POST',
        body: { type: 'offer', sdp: peer.localDescription?.sdp, after: options.after },
        signal: options.signal,
      });
      const connection = new RtcConnection(peer, channel, answer.messageBytesMax);
      await peer.setRemoteDescription({ type: 'answer', sdp: answer.sdp });
      const { payload } = await within(Promise.race([ready, connection.cut.then(failed)]), options.signal);
      const rate = payload?.messagesPerSecond;
      if (typeof rate === 'number' && rate > 0) connection.#messagesPerSecond = rate;
      return connection;
    } catch (error) {
      peer.close();
      throw error;
    }
  }

  /** Bytes of one message: what the gateway reads, and what this browser sends at most. */
  get bytesMax(): number {
    return Math.min(this.#bytesMax, this.#peer.sctp?.maxMessageSize ?? Number.POSITIVE_INFINITY);
  }

  /** Messages per second that the gateway takes of this channel. */
  get messagesPerSecond(): number {
    return this.#messagesPerSecond;
  }

  send(text: string): void {
    try {
      this.#channel.send(text);
    } catch {
      // Cut a moment ago: the message is sent again on the next connection.
      this.#end();
    }
  }

  close(): void {
    this.#peer.close();
    this.#end();
  }
}

/** Passes messages on; resolves with the first word of the gateway. */
function readyOf(channel: RTCDataChannel, options: RtcConnectionOptions): Promise<ChannelNotice> {
  return new Promise((resolve, reject) => {
    channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
      try {
        const message = typeof data === 'string' ? readChannelMessage(data) : undefined;
        if (message === undefined) return;
        if (!isNotice(message)) return options.onMessage(message);
        options.onNotice(message);
        if (message.type === 'CHANNEL_READY') resolve(message);
      } catch (error) {
        reject(error);
        channel.close();
      }
    });
  });
}

function failed(): never {
  throw new ConnectionError(CODES.connection, 'the data channel was cut before it was open', {
    retryable: true,
  });
}

/** The same promise, with a limit. */
async function within<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop = (): void => {};
  const late = new Promise<never>((_, reject) => {
    const words = `the data channel did not open within ${OPEN_MS_MAX / 1000} s: the gateway's UDP port cannot be reached`;
    stop = () => reject(new ConnectionError(CODES.connection, 'the caller closed the channel'));
    timer = setTimeout(
      () => reject(new ConnectionError(CODES.connection, words, { retryable: true })),
      OPEN_MS_MAX,
    );
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
