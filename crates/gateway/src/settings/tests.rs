use std::collections::BTreeSet;
use std::io::Write as _;

use super::environment::check_names;
use super::*;

fn load(file: &str, env: &[(&str, &str)]) -> anyhow::Result<Settings> {
    let mut written = tempfile::NamedTempFile::with_suffix(".toml")?;
    written.write_all(file.as_bytes())?;
    let find = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
    Settings::load(Some(written.path()), find)
}

fn error(file: &str, env: &[(&str, &str)]) -> String {
    format!("{:#}", load(file, env).expect_err("must be refused"))
}

#[test]
fn the_sample_shows_every_setting_with_its_default() {
    assert_eq!(load(SAMPLE, &[]).unwrap(), Settings::default());
    shows_all(&SAMPLE.parse().unwrap(), &|table| table);
}

/// Everything that may stand in `section` does. `whole` gives the file that a section stands in.
fn shows_all(section: &toml::Table, whole: &dyn Fn(toml::Table) -> toml::Table) {
    let mut wrong = section.clone();
    wrong.insert("no_such_setting".into(), 1.into());
    let told = error(&whole(wrong).to_string(), &[]);
    let (_, expected) = told.rsplit_once("expected ").expect("names what would be right");
    let expected: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
    assert_eq!(expected, section.keys().map(String::as_str).collect());
    for (name, value) in section {
        if let Some(inner) = value.as_table() {
            shows_all(inner, &|inner| {
                let mut outer = section.clone();
                outer.insert(name.clone(), inner.into());
                whole(outer)
            });
        }
    }
}

#[test]
fn the_environment_wins_over_the_file_and_reads_each_type() {
    let settings = load(
        "listen = \"127.0.0.1:1\"\n[http]\nbody_bytes_max = 5\n[model]\nname = \"from-file\"",
        &[
            ("TOOLGATE_LISTEN", "127.0.0.1:2"),
            ("TOOLGATE_HTTP_BODY_BYTES_MAX", "7"),
            ("TOOLGATE_HTTP_HEARTBEAT", "250ms"),
            ("TOOLGATE_HTTP_ORIGINS", "http://a.test, http://b.test"),
            ("TOOLGATE_HTTP_RATE_BURST", "9"),
            ("TOOLGATE_MODEL_BASE_URL", ""),
            ("TOOLGATE_MODEL_API_KEY", "1234"),
            ("OPENAI_API_KEY", "foreign"),
            ("GOOGLE_API_KEY", "second"),
            ("GEMINI_API_KEY", "first"),
        ],
    )
    .unwrap();
    assert_eq!(settings.listen, "127.0.0.1:2");
    assert_eq!(settings.http.body_bytes_max, 7);
    assert_eq!(settings.http.heartbeat, Duration::from_millis(250));
    assert_eq!(settings.http.origins, ["http://a.test", "http://b.test"]);
    assert_eq!(settings.http.rate.burst, 9);
    assert_eq!(settings.model.base_url, None);
    assert_eq!(settings.model.name.as_deref(), Some("from-file"));
    assert_eq!(settings.model.api_key, Some(Secret::new("1234")));
    assert_eq!(settings.vendors.openai_key, Some(Secret::new("foreign")));
    assert_eq!(settings.vendors.google_key, Some(Secret::new("first")));
}

#[test]
fn an_origin_that_no_browser_sends_is_refused_with_the_one_that_it_does() {
    let check = |origin: &str| {
        let settings = load("", &[("TOOLGATE_HTTP_ORIGINS", origin)]).unwrap();
        settings.http.check_origins().map_err(|error| error.to_string())
    };
    for (origin, words) in [
        (
            "http://localhost:3000/",
            "leave out the \"/\" at its end: \"http://localhost:3000\"",
        ),
        (
            "https://app.example/chat",
            "did you mean \"https://app.example\"?",
        ),
        ("https://App.example:443", "did you mean \"https://app.example\"?"),
        ("localhost:3000", "an origin with its scheme"),
        ("127.0.0.1:3000", "an origin with its scheme"),
        ("app.example", "an origin with its scheme"),
        ("https://*.app.example", "an origin with its scheme"),
        ("http://a.test, b.test", "has \"b.test\""),
    ] {
        let told = check(origin).expect_err("never matches");
        assert!(told.contains("`http.origins`") && told.contains(words), "{told}");
    }
    for origin in [
        "*",
        "null",
        "http://localhost:3000",
        "http://[::1]:3000, https://app.example",
        "chrome-extension://abcdefgh",
        "capacitor://localhost",
    ] {
        check(origin).expect(origin);
    }
}

#[test]
fn mail_is_set_by_the_environment_and_checked_at_the_start() {
    const HOST: (&str, &str) = ("TOOLGATE_NOTIFICATIONS_SMTP_HOST", "mail.example.com");
    const FROM: (&str, &str) = ("TOOLGATE_NOTIFICATIONS_SMTP_FROM", "Gate <gate@example.com>");
    const TO: (&str, &str) = ("TOOLGATE_NOTIFICATIONS_SMTP_TO", "a@example.com, b@example.com");
    const USER: (&str, &str) = ("TOOLGATE_NOTIFICATIONS_SMTP_USER", "gate");
    const PASSWORD: (&str, &str) = ("TOOLGATE_NOTIFICATIONS_SMTP_PASSWORD", "hush-hush");
    const BARE: (&str, &str) = ("TOOLGATE_NOTIFICATIONS_SMTP_SECURITY", "none");
    let settings = load("", &[HOST, FROM, TO, USER, PASSWORD]).unwrap();
    assert_eq!(settings.notifications.smtp.to, ["a@example.com", "b@example.com"]);
    assert!(settings.notifications.channels().unwrap().mail.is_some());
    assert!(
        load("", &[FROM, TO])
            .unwrap()
            .notifications
            .channels()
            .unwrap()
            .mail
            .is_none()
    );
    for (env, words) in [
        (&[HOST, FROM][..], "nobody to write to"),
        (&[HOST, TO], "no mail address"),
        (&[HOST, FROM, TO, USER], "user and password go together"),
        (&[HOST, FROM, TO, USER, PASSWORD, BARE], "needs tls or starttls"),
    ] {
        let refused = load("", env).unwrap().notifications.channels().unwrap_err();
        let told = format!("{refused:#}");
        assert!(
            told.contains("[notifications.smtp]") && told.contains(words),
            "{told}"
        );
        assert!(!told.contains("hush-hush"), "{told}");
    }
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_line_and_what_would_be_right() {
    let told = error("listen = \"127.0.0.1:1\"\n\n[http]\nbody_byte_max = 5\n", &[]);
    assert!(told.contains(".toml"), "{told}");
    assert!(told.contains("line 4"), "{told}");
    assert!(told.contains("`body_bytes_max`"), "{told}");

    let told = error("[http]\nheartbeat = \"soon\"\n", &[]);
    assert!(told.contains("line 2") && told.contains("\"15s\""), "{told}");

    let told = error("[log]\nformat = \"xml\"\n", &[]);
    assert!(told.contains("line 2") && told.contains("`json`"), "{told}");
}

#[test]
fn tools_of_requests_are_limited_by_the_settings_but_never_trusted_more_than_an_agents() {
    let settings = load(
        "[client_tools]\ntools_max = 3\nconflict = \"keep-trusted\"\n[client_tools.schema]\ndepth_max = 7\n",
        &[("TOOLGATE_CLIENT_TOOLS_SCHEMA_PROPERTIES_MAX", "30")],
    )
    .unwrap();
    let limits = settings.client_tools.limits().unwrap();
    assert_eq!((limits.tools, limits.bytes), (3, 64 * 1024));
    assert_eq!((limits.schema.depth, limits.schema.properties), (7, 30));
    assert_eq!(limits.schema.expansion, 0);
    let settings = load("[client_tools.schema]\ndepth_max = 1000\n", &[]).unwrap();
    let told = settings.client_tools.limits().unwrap_err().to_string();
    assert!(
        told.contains("`client_tools.schema.depth_max` is 1000; at most 32"),
        "{told}"
    );
    let settings = load("[client_tools]\nresult_bytes_max = 10\n", &[]).unwrap();
    let told = settings.client_tools.limits().unwrap_err().to_string();
    assert!(
        told.contains("`client_tools.result_bytes_max` is 10; at least 1024"),
        "{told}"
    );
    let told = error("[client_tools]\nconflict = \"maybe\"\n", &[]);
    assert!(told.contains("`keep-trusted`"), "{told}");
}

#[test]
fn a_mistake_in_the_environment_is_told_with_the_variable() {
    let told = error("", &[("TOOLGATE_HTTP_BODY_BYTES_MAX", "much")]);
    assert!(
        told.contains("TOOLGATE_HTTP_BODY_BYTES_MAX") && told.contains("http.body_bytes_max"),
        "{told}"
    );
    for (name, text, words) in [
        (
            "TOOLGATE_CLIENT_TOOLS_PUBLIC_TOOLS_MAX",
            "-1",
            "`client_tools.public_tools_max`: expected a whole number, 0 or more, got \"-1\"",
        ),
        (
            "TOOLGATE_CLIENT_TOOLS_CONFLICT",
            "prefx",
            "`client_tools.conflict`: expected error, prefix or keep-trusted, got \"prefx\"",
        ),
        (
            "TOOLGATE_VENDORS_DIRECT",
            "maybe",
            "expected true or false, got \"maybe\"",
        ),
        (
            "TOOLGATE_HTTP_HEARTBEAT",
            "soon",
            "\"soon\" is no time; expected one like",
        ),
    ] {
        let told = error("", &[(name, text)]);
        assert!(told.contains(name) && told.contains(words), "{told}");
    }
}

#[test]
fn the_key_that_signs_plugins_is_no_secret_of_tools() {
    let file = "[secrets]\nCRM = \"for-tools-1\"\nSIGNING = \"private-key\"\n\
                [plugins.signing]\ncurator = \"own\"\nsecret = \"SIGNING\"\n";
    let settings = load(file, &[]).unwrap();
    let own = settings.of_project("default", None);
    let signing = own.plugin_settings(Default::default()).signing.unwrap();
    assert_eq!(signing.private_key, Some(Secret::new("private-key")));
    let names = |settings: &Settings| Vec::from_iter(settings.secrets.keys().cloned());
    assert_eq!(names(&own), ["CRM"]);
    // Not even when the project's own settings replace the section that names it.
    let stored = ProjectOverlay::read(&serde_json::json!({"plugins": {}}).into()).unwrap();
    let replaced = settings.of_project("default", Some(stored));
    assert_eq!(names(&replaced), ["CRM"]);
    assert!(replaced.plugin_settings(Default::default()).signing.is_none());
    let stored = serde_json::json!({
        "secrets": {"THEIRS": "private-too"},
        "plugins": {"signing": {"curator": "theirs", "secret": "THEIRS"}},
    });
    let other = settings.of_project("other", Some(ProjectOverlay::read(&stored.into()).unwrap()));
    assert!(names(&other).is_empty());
    let signing = other.plugin_settings(Default::default()).signing.unwrap();
    assert_eq!(signing.private_key, Some(Secret::new("private-too")));
}

#[test]
fn secrets_of_tools_come_from_the_file_and_the_environment_but_the_projects_key_is_none() {
    let mut settings = load(
        "[secrets]\nCRM = \"from-file\"\nOTHER = \"kept-one\"\nEMPTY = \"\"\n",
        &[],
    )
    .unwrap();
    let environment = [
        ("TOOLGATE_SECRET_CRM", "from-environment"),
        ("TOOLGATE_SECRET_KEY", "sk_the_projects_own"),
        ("TOOLGATE_SECRET_UNSET", ""),
        ("PATH", "/bin"),
    ];
    settings.add_secrets(
        environment
            .map(|(name, text)| (name.into(), text.into()))
            .into_iter(),
    );
    let names: Vec<_> = settings.secrets.keys().map(String::as_str).collect();
    assert_eq!(names, ["CRM", "OTHER"]);
    assert_eq!(settings.secrets["CRM"], Secret::new("from-environment"));
    assert!(!format!("{settings:?}").contains("from-environment"));
    settings.outbound_settings().unwrap();
}

#[test]
fn what_tools_reach_outside_is_checked_at_the_start() {
    let told = |file: &str| format!("{:#}", load(file, &[]).unwrap().outbound_settings().unwrap_err());
    let wrong = told("[outside]\nallow = [\"http://a/\"]\n");
    assert!(
        wrong.contains("`outside.allow`") && wrong.contains("127.0.0.1:9000"),
        "{wrong}"
    );
    let short = told("[secrets]\nPIN = \"123\"\n");
    assert!(short.contains("\"PIN\"") && !short.contains("123"), "{short}");
    assert!(told("[search]\nengine = \"searxng\"\n").contains("`search.base_url`"));
    assert!(told("[search]\nengine = \"gemini\"\n").contains("`vendors.google_key`"));
    assert!(told("[images]\nbase_url = \"box:1\"\n").contains("`images.base_url`"));
}

#[test]
fn variables_that_look_like_ours_and_are_not_are_refused_with_the_right_name() {
    let set_to = |name: &str, text: &str| {
        check_names([(name.to_owned(), text.to_owned())]).map_err(|error| error.to_string())
    };
    let check = |name: &str| set_to(name, "1");
    for (name, words) in [
        ("TOOLGATE_PORT", "did you mean TOOLGATE_LISTEN?"),
        ("TOOLGATE_HOST", "did you mean TOOLGATE_LISTEN?"),
        ("TOOLGATE_BIND", "did you mean TOOLGATE_LISTEN?"),
        ("TOOLGATE_DATA_DIR", "did you mean TOOLGATE_DATA?"),
        ("TOOLGATE_DATADIR", "did you mean TOOLGATE_DATA?"),
        ("TOOLGATE_MODEL", "did you mean TOOLGATE_MODEL_NAME?"),
        ("TOOLGATE_MODEL_PROVIDER", "did you mean TOOLGATE_MODEL_BASE_URL?"),
        ("TOOLGATE_MODEL_BASEURL", "did you mean TOOLGATE_MODEL_BASE_URL?"),
        ("TOOLGATE_HTP_ORIGINS", "did you mean TOOLGATE_HTTP_ORIGINS?"),
        ("TOOLGATE_NOAUTH", "did you mean TOOLGATE_NO_AUTH?"),
        ("TOOLGATE_MODEL_URL", "did you mean TOOLGATE_MODEL_BASE_URL?"),
        ("TOOLGATE_ORIGINS", "did you mean TOOLGATE_HTTP_ORIGINS?"),
        (
            "TOOLGATE_API_KEY",
            "did you mean TOOLGATE_EMBEDDINGS_API_KEY, TOOLGATE_IMAGES_API_KEY or TOOLGATE_MODEL_API_KEY?",
        ),
        ("TOOLGATE_NONSENSE", "`toolgate settings`"),
        ("TOOLGATE_SECRET_KYE", "a misspelt TOOLGATE_SECRET_KEY,"),
        ("TOOLGATE_SECRET_KEYS", "under [secrets] in the settings file"),
    ] {
        let told = check(name).expect_err("is no setting");
        assert!(told.contains(name) && told.contains(words), "{told}");
    }
    for name in [
        "TOOLGATE_MODEL_BASE_URL",
        "TOOLGATE_SECRET_KEY",
        "TOOLGATE_SECRET_CRM_TOKEN",
        "TOOLGATE_SECRET_PIN",
        "TOOLGATE_SECRET_DEV",
        "TOOLGATE_CONFIG",
        "OPENAI_API_KEY",
        "SOMETHING_ELSE",
        // What Kubernetes sets beside a service that is called `toolgate`.
        "TOOLGATE_PORT_8787_TCP_ADDR",
        "TOOLGATE_SERVICE_HOST",
    ] {
        check(name).expect(name);
    }
    set_to("TOOLGATE_PORT", "tcp://10.96.0.12:8787").expect("what Kubernetes sets");
}
