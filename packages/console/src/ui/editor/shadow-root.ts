/**
 * The shadow root in which an editor lives. Inside one, the editor puts its styles in `adoptedStyleSheets`; in the
 * document itself it would add a `<style>` element, which the page's content security policy refuses.
 */
export function shadowRootOf(host: HTMLElement): ShadowRoot {
  return host.shadowRoot ?? host.attachShadow({ mode: 'open' });
}
