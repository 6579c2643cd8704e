/** A browser without a screen: cookies, redirects and forms. */
export class Browser {
  #cookies = new Map<string, Map<string, string>>();

  /** Goes where redirects lead, or to the first address that `stopAt` begins. */
  async go(
    url: string,
    stopAt?: string,
    form?: URLSearchParams,
  ): Promise<{ url: string; text: string; status: number }> {
    let next = url;
    let body = form;
    for (let hops = 0; hops < 20; hops += 1) {
      if (stopAt !== undefined && next.startsWith(stopAt)) return { url: next, text: '', status: 0 };
      const jar = this.#jar(next);
      const response = await fetch(next, {
        method: body ? 'POST' : 'GET',
        redirect: 'manual',
        headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
        ...(body ? { body } : {}),
      });
      for (const cookie of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
        if (name !== undefined && value !== undefined) jar.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) return { url: next, text: await response.text(), status: response.status };
      await response.body?.cancel();
      next = new URL(location, next).href;
      body = undefined;
    }
    throw new Error('too many redirects');
  }

  /** Signs in as `name` and agrees to everything; gives the address of the callback, which is not visited. */
  async signIn(authorizeUrl: string, name: string, callback: string): Promise<string> {
    let page = await this.go(authorizeUrl, callback);
    for (let pages = 0; page.text !== '' && pages < 5; pages += 1) {
      const action = /<form[^>]* action="([^"]+)"/.exec(page.text)?.[1];
      const prompt = /name="prompt" value="([^"]+)"/.exec(page.text)?.[1];
      if (action === undefined || prompt === undefined) throw new Error(`no form in:\n${page.text}`);
      const form = new URLSearchParams({ prompt, login: name, password: 'any' });
      page = await this.go(new URL(action, page.url).href, callback, form);
    }
    return page.url;
  }

  #jar(url: string): Map<string, string> {
    const { host } = new URL(url);
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, jar);
    return jar;
  }
}
