//! What the code finds, and what it does not.

use toolgate_script::FailureKind;

use crate::{Echo, LIMITS, fails, gives, run_with};

#[test]
fn there_is_no_way_out_of_the_realm() {
    gives(
        "return ['process', 'require', 'os', 'std', 'Deno', 'native', 'print', 'load', 'XMLHttpRequest', 'WebSocket']
            .filter((name) => name in globalThis)",
        "[]",
    );
    fails(
        "await import('os')",
        FailureKind::Threw,
        "ReferenceError: could not load module 'os'",
    );
}

#[test]
fn timers_fire_in_order_and_can_be_stopped() {
    gives(
        "const seen = [];
         setTimeout(() => seen.push('late'), 20);
         const stopped = setTimeout(() => seen.push('never'), 5);
         clearTimeout(stopped);
         let ticks = 0;
         const interval = setInterval(() => { seen.push(`tick ${++ticks}`); if (ticks === 2) clearInterval(interval); }, 1);
         queueMicrotask(() => seen.push('first'));
         await new Promise((done) => setTimeout((word) => { seen.push(word); done() }, 40, 'last'));
         return seen",
        r#"["first","tick 1","tick 2","late","last"]"#,
    );
    fails(
        "setTimeout(() => { throw new Error('in a timer') }); await new Promise(() => {})",
        FailureKind::Threw,
        "Error: in a timer (line 1, column 30)",
    );
}

#[test]
fn fetch_gives_a_response_and_its_errors_are_errors() {
    gives(
        "const answer = await fetch('https://api.example.com/x?y=1', {method: 'POST', headers: {'X-Mine': ' 1 '}, body: new URLSearchParams({a: 'b c'})});
         const sent = await answer.json();
         return [answer.status, answer.ok, answer.headers.get('content-type'), sent]",
        r#"[201,true,"application/json",{"method":"POST","url":"https://api.example.com/x?y=1","headers":[["content-type","application/x-www-form-urlencoded;charset=UTF-8"],["x-mine","1"]],"text":"a=b+c"}]"#,
    );
    gives(
        "try { await fetch('https://refused.example/') } catch (error) { return error.message }",
        r#""no permission names this host""#,
    );
    gives(
        "const stop = new AbortController(); stop.abort();
         try { await fetch('https://api.example.com/', {signal: stop.signal}) } catch (error) { return error.name }",
        r#""AbortError""#,
    );
    gives(
        "const answer = new Response(new Uint8Array([0xe2, 0x82, 0xac]));
         const copy = answer.clone();
         return [await answer.text(), [...await copy.bytes()], answer.bodyUsed]",
        r#"["€",[226,130,172],true]"#,
    );
}

#[test]
fn storage_keeps_json() {
    let mut host = Echo::default();
    let code = "await storage.set('k', {a: [1]}); await storage.delete('k');
        return [await storage.get('k'), await storage.get('missing') ?? 'none', await storage.list()]";
    let got = run_with(code, "{}", LIMITS, &mut host);
    assert_eq!(got.as_deref(), Ok(r#"["kept","none","kept"]"#));
    assert_eq!(host.begun[0].1, r#"{"op":"set","key":"k","value":{"a":[1]}}"#);
    assert_eq!(host.begun[1].1, r#"{"op":"delete","key":"k"}"#);
    assert_eq!(host.begun[4].1, r#"{"op":"list","prefix":""}"#);
    fails(
        "await storage.set('k', () => 1)",
        FailureKind::Threw,
        "TypeError: storage keeps JSON, and this value is none (line 1, column 14)",
    );
}

#[test]
fn text_bytes_and_base64_convert() {
    gives(
        "const bytes = new TextEncoder().encode('a€😀');
         return [[...bytes], new TextDecoder().decode(bytes), new TextDecoder().decode(new Uint8Array([0xff, 65])), btoa('\\xff'), atob('/w').charCodeAt(0)]",
        r#"[[97,226,130,172,240,159,152,128],"a€😀","�A","/w==",255]"#,
    );
    fails(
        "new TextDecoder('utf-8', {fatal: true}).decode(new Uint8Array([0xff]))",
        FailureKind::Threw,
        "TypeError: the bytes are not UTF-8 (line 1, column 52)",
    );
    gives("return new TextEncoder().encode('\\ud800').length", "3");
}

#[test]
fn addresses_are_parsed_as_on_the_web() {
    gives(
        "const url = new URL('../b?x=1#h', 'https://user@EXAMPLE.com:443/a/c/');
         url.searchParams.append('y', 'ä &'); url.port = '8080'; url.hash = '';
         return [url.href, url.host, url.searchParams.get('x'), [...new URLSearchParams('?a=1&a=2')], URL.canParse('no')]",
        r#"["https://user@example.com:8080/a/b?x=1&y=%C3%A4+%26","example.com:8080","1",[["a","1"],["a","2"]],false]"#,
    );
    gives(
        "try { new URL('no') } catch (error) { return String(error) }",
        r#""TypeError: Invalid URL: no""#,
    );
    gives(
        "return {url: new URL('https://a.example/')}",
        r#"{"url":"https://a.example/"}"#,
    );
}

#[test]
fn values_are_cloned_and_random_ones_differ() {
    gives(
        "const one = {date: new Date(0), map: new Map([[1, new Set([2])]]), bytes: new Uint8Array([1, 2])};
         one.self = one;
         const two = structuredClone(one);
         return [two.self === two, two.date.getTime(), [...two.map.get(1)], [...two.bytes], two.bytes.buffer !== one.bytes.buffer]",
        "[true,0,[2],[1,2],true]",
    );
    gives(
        "try { structuredClone(() => 1) } catch (error) { return error.name }",
        r#""DataCloneError""#,
    );
    gives(
        "const [a, b] = [crypto.randomUUID(), crypto.randomUUID()];
         const bytes = crypto.getRandomValues(new Uint32Array(8));
         return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(a), a !== b, new Set(bytes).size > 1]",
        "[true,true,true]",
    );
}

#[test]
fn the_time_plugin_of_the_seed_runs() {
    let code = "const tz = args.timezone || 'UTC';
        const now = new Date(0);
        return { time: now.toISOString(), formatted: now.toLocaleString('en-US', { timeZone: tz }), timezone: tz };";
    let got = run_with(
        code,
        r#"{"timezone": "Asia/Tokyo"}"#,
        LIMITS,
        &mut Echo::default(),
    );
    let expected = "{\"time\":\"1970-01-01T00:00:00.000Z\",\"formatted\":\"1/1/1970, 9:00:00 AM\",\"timezone\":\"Asia/Tokyo\"}";
    assert_eq!(got.as_deref(), Ok(expected));
}
