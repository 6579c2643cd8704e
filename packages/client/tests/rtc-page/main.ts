import { type RtcChannel, type ToolDataChannelMessage, ToolgateClient } from '../../src/index.js';

/** What a test does with the page. */
export interface Page {
  connect(options: { publicKey: string; token: string; space: string; after?: number }): void;
  channel: RtcChannel;
  messages: ToolDataChannelMessage[];
  opened: number;
  errors: string[];
  /** Cuts the connection as a network would. */
  cut(): void;
}

declare global {
  interface Window {
    page: Page;
  }
}

const channels: RTCDataChannel[] = [];
const original = RTCPeerConnection.prototype.createDataChannel;
RTCPeerConnection.prototype.createDataChannel = function (...args) {
  const channel = original.apply(this, args);
  channels.push(channel);
  return channel;
};

window.page = {
  channel: undefined as never,
  messages: [],
  opened: 0,
  errors: [],
  connect({ publicKey, token, space, after }) {
    const client = new ToolgateClient({ url: location.origin, publicKey, token });
    this.channel = client.spaces.connectRtc(space, {
      ...(after === undefined ? {} : { after }),
      onMessage: (message) => this.messages.push(message),
      onOpen: () => {
        this.opened += 1;
      },
      onError: (error) => this.errors.push(String(error)),
    });
  },
  cut: () => channels.at(-1)?.close(),
};
