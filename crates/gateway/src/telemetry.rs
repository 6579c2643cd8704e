//! Logs to standard error, metrics for `/metrics`, OpenTelemetry spans over OTLP.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Directive;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use crate::settings::{self, LogFormat};
use crate::telemetry_help;

/// Interval of the metrics upkeep, which bounds their memory while nobody scrapes them.
const UPKEEP: Duration = Duration::from_secs(5);
/// Upper bounds of the buckets of durations, in seconds. All histograms are durations but [`COMMIT_WRITES`].
const BUCKETS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
/// The histogram that counts writes.
const COMMIT_WRITES: &str = "toolgate_store_commit_writes";
/// Upper bounds of its buckets.
const WRITES_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// OTLP's path for spans, relative to the endpoint.
const TRACES_PATH: &str = "/v1/traces";

/// Logs, metrics and spans are enabled while this lives.
pub struct Telemetry {
    figures: PrometheusHandle,
    spans: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Enables them for the whole process. Called once.
    pub fn start(log: &settings::Log, telemetry: &settings::Telemetry) -> anyhow::Result<Self> {
        let spans = telemetry
            .otlp_endpoint
            .as_deref()
            .map(|endpoint| exporter(endpoint, &telemetry.service_name))
            .transpose()?;
        let ours = |spans: &SdkTracerProvider| {
            let tracer = spans.tracer("toolgate");
            // Spans of other crates are excluded, above all those of the HTTP client that sends the spans:
            // they would cause more spans.
            tracing_opentelemetry::layer()
                .with_tracer(tracer)
                .with_filter(FilterFn::new(|meta| meta.target().starts_with("toolgate")))
                .with_filter(LevelFilter::INFO)
        };
        tracing_subscriber::registry()
            .with(logs(log)?)
            .with(spans.as_ref().map(ours))
            .init();
        let figures = recorder()
            .and_then(PrometheusBuilder::install_recorder)
            .context("cannot record metrics")?;
        telemetry_help::describe();
        metrics::gauge!("toolgate_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self { figures, spans })
    }

    /// A function that renders the metrics in Prometheus' text format.
    pub fn figures(&self) -> Arc<dyn Fn() -> String + Send + Sync> {
        let figures = self.figures.clone();
        Arc::new(move || figures.render())
    }

    /// Runs the metrics upkeep without end.
    pub fn upkeep(&self) -> impl Future<Output = ()> + Send + use<> {
        let figures = self.figures.clone();
        async move {
            let mut tick = tokio::time::interval(UPKEEP);
            loop {
                tick.tick().await;
                figures.run_upkeep();
            }
        }
    }

    /// Sends the spans that are still buffered.
    pub fn flush(self) {
        if let Some(Err(error)) = self.spans.map(|spans| spans.shutdown()) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// What records metrics, with the buckets of histograms.
fn recorder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(COMMIT_WRITES.into()), WRITES_BUCKETS)
}

fn logs<S>(log: &settings::Log) -> anyhow::Result<impl Layer<S>>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let level = levels(&log.level)?;
    let terminal = std::io::stderr().is_terminal();
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(terminal);
    let layer = match log.format {
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
        LogFormat::Auto if !terminal => layer.json().flatten_event(true).boxed(),
        LogFormat::Auto | LogFormat::Text => layer.boxed(),
    };
    Ok(layer.with_filter(level))
}

/// What is logged at the setting `log.level`.
fn levels(level: &str) -> anyhow::Result<EnvFilter> {
    let levels = EnvFilter::try_new(level).with_context(|| {
        format!(
            "the setting `log.level` is {level:?}; expected one like \"info\" or \"info,toolgate_engine=debug\""
        )
    })?;
    // The MCP library logs whole messages, inputs and outputs of tools included, and codes of sign-ins.
    let levels = levels.add_directive(directive("rmcp=error"));
    // Those of data channels warn of what their peers send, which may be anything. Whoever sets a level for one hears it.
    let is_set = |library: &str| {
        level
            .split(',')
            .any(|part| part.split('=').next() == Some(library))
    };
    let quiet = RTC_LIBRARIES.into_iter().filter(|library| !is_set(library));
    Ok(quiet.fold(levels, |levels, library| {
        levels.add_directive(directive(&format!("{library}=off")))
    }))
}

fn directive(text: &str) -> Directive {
    text.parse().expect("a directive")
}

/// Targets of the libraries that data channels are made of.
const RTC_LIBRARIES: [&str; 4] = ["str0m", "is", "sctp_proto", "dimpl"];

fn exporter(endpoint: &str, service: &str) -> anyhow::Result<SdkTracerProvider> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}{TRACES_PATH}", endpoint.trim_end_matches('/')))
        .build()
        .with_context(|| {
            format!("cannot send spans to {endpoint:?}; `telemetry.otlp_endpoint` is one like \"http://127.0.0.1:4318\"")
        })?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name(service.to_owned()).build())
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(level: &str) -> Vec<String> {
        let levels = levels(level).unwrap().to_string();
        levels.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn writes_of_a_commit_are_counted_in_whole_numbers() {
        let recorder = recorder().unwrap().build_recorder();
        metrics::with_local_recorder(&recorder, || metrics::histogram!(COMMIT_WRITES).record(100.0));
        let figures = recorder.handle().render();
        assert!(
            figures.contains("toolgate_store_commit_writes_bucket{le=\"64\"} 0")
                && figures.contains("toolgate_store_commit_writes_bucket{le=\"128\"} 1"),
            "{figures}"
        );
    }

    #[test]
    fn libraries_that_log_what_others_send_are_quiet_unless_a_level_is_set_for_them() {
        for part in ["info", "rmcp=error", "str0m=off", "sctp_proto=off"] {
            assert!(parts("info").iter().any(|known| known == part), "{part}");
        }
        let loud = parts("info,str0m=debug,rmcp=debug");
        assert!(loud.contains(&"str0m=debug".to_owned()) && !loud.contains(&"str0m=off".to_owned()));
        assert!(loud.contains(&"rmcp=error".to_owned()), "it logs what tools say");
    }
}
