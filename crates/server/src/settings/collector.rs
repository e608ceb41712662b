//! OpenTelemetry: where spans and log lines are sent. The names are the standard's.

use clap::{Args, ValueEnum};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

/// Where spans and log lines are sent. Nothing is, without an address.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "OpenTelemetry")]
pub(crate) struct CollectorArgs {
    /// The collector that spans and log lines are sent to by OTLP over HTTP, such as `http://localhost:4318`.
    /// Without it nothing is sent.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(crate) otlp_endpoint: Option<Url>,
    /// Headers of these requests, such as `authorization=Bearer%20TOKEN`, divided by commas.
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_HEADERS",
        hide_env_values = true,
        value_name = "NAME=VALUE,…"
    )]
    pub(crate) otlp_headers: Option<SecretString>,
    /// How they are written; there is one way.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_PROTOCOL", value_enum, default_value_t = Protocol::Protobuf)]
    pub(crate) otlp_protocol: Protocol,
    /// Whether spans of the proxy's requests are sent.
    #[arg(long, env = "OTEL_TRACES_EXPORTER", value_enum, default_value_t = Sent::Otlp)]
    pub(crate) traces_exporter: Sent,
    /// Whether log lines are sent, besides being written to standard error.
    #[arg(long, env = "OTEL_LOGS_EXPORTER", value_enum, default_value_t = Sent::Otlp)]
    pub(crate) logs_exporter: Sent,
    /// Which traces are kept.
    #[arg(long, env = "OTEL_TRACES_SAMPLER", value_enum, default_value_t = SamplerWord::ParentbasedAlwaysOn)]
    pub(crate) traces_sampler: SamplerWord,
    /// The part of traces that a sampler `…traceidratio` keeps: 0 to 1.
    #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", default_value = "1", value_parser = ratio, value_name = "RATIO")]
    pub(crate) traces_sampler_arg: f64,
    /// What this service is called there.
    #[arg(long, env = "OTEL_SERVICE_NAME", default_value = "sluice", value_name = "NAME")]
    pub(crate) service_name: String,
    /// What else is said of it there, such as `deployment.environment.name=production`.
    #[arg(long, env = "OTEL_RESOURCE_ATTRIBUTES", value_parser = pairs, value_name = "NAME=VALUE,…")]
    pub(crate) resource_attributes: Option<Pairs>,
}

/// Names and values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// Protocol buffers over HTTP.
    #[value(name = "http/protobuf")]
    Protobuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sent {
    Otlp,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SamplerWord {
    AlwaysOn,
    AlwaysOff,
    Traceidratio,
    /// As the client does; else all.
    ParentbasedAlwaysOn,
    ParentbasedAlwaysOff,
    ParentbasedTraceidratio,
}

impl CollectorArgs {
    /// The headers, in clear.
    pub(crate) fn headers(&self) -> Result<Pairs, String> {
        let told = self.otlp_headers.as_ref().map(|told| pairs(told.expose_secret()));
        // A value may be a secret: it is not repeated.
        told.unwrap_or_else(|| Ok(Pairs::default()))
            .map_err(|_| "`OTEL_EXPORTER_OTLP_HEADERS` is not `name=value,name=value`".to_owned())
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio: Option<f64> = text.trim().parse().ok();
    ratio
        .filter(|ratio| (0.0..=1.0).contains(ratio))
        .ok_or_else(|| format!("`{text}` is not a number from 0 to 1"))
}

/// Reads `name=value,name=value`; values may be percent-encoded.
fn pairs(text: &str) -> Result<Pairs, String> {
    let all = text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(|part| {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("`{part}` has no `=`"))?;
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8();
        let value = value.map_err(|_| format!("the value of `{name}` is not text"))?;
        Ok((name.trim().to_owned(), value.into_owned()))
    });
    all.collect::<Result<_, String>>().map(Pairs)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        own: CollectorArgs,
    }

    fn read(arguments: &[&str]) -> Result<CollectorArgs, clap::Error> {
        Only::try_parse_from(["sluice"].iter().chain(arguments)).map(|only| only.own)
    }

    #[test]
    fn the_standards_words_are_read_and_others_refused() {
        let own = read(&[
            "--otlp-endpoint=http://collector:4318/base",
            "--otlp-headers=authorization=Bearer%20a=b, x-tenant = t",
            "--traces-sampler=parentbased_traceidratio",
            "--traces-sampler-arg=0.25",
            "--resource-attributes=a.b=c,d=%41",
            "--otlp-protocol=http/protobuf",
        ])
        .expect("all of it is good");
        assert_eq!(own.traces_sampler, SamplerWord::ParentbasedTraceidratio);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let headers = own.headers().expect("they are good").0;
        assert_eq!(headers, [pair("authorization", "Bearer a=b"), pair("x-tenant", "t")]);
        let attributes = own.resource_attributes.expect("some").0;
        assert_eq!(attributes, [pair("a.b", "c"), pair("d", "A")]);
        for bad in [
            "--traces-sampler-arg=1.5",
            "--traces-sampler-arg=NaN",
            "--otlp-protocol=grpc",
            "--resource-attributes=x",
            "--traces-exporter=jaeger",
            "--otlp-endpoint=collector",
        ] {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_that_cannot_be_read_are_not_repeated() {
        let own = read(&["--otlp-headers=hush"]).expect("it is looked at later");
        let error = own.headers().expect_err("there is no value");
        assert!(!error.contains("hush") && !format!("{own:?}").contains("hush"), "{error}");
    }
}
