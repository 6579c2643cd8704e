//! `image-generator`: an image from an OpenAI-compatible server, kept as a file of the space.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_egress::{AllowList, BodyLimit, Client, Policy, Request, Response, Secrets};
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_engine::workspace::{FileInfo, NewFile, Only, Workspace};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::preview;
use toolgate_kernel::tool::{Binding, SourceTool, ToolList};
use url::Url;

use crate::outbound::{self, Outbound};
use crate::toolkit::configured;
use crate::vfs::{failure, place};

const ADDRESS: &str = "https://api.openai.com/v1";
const MODEL: &str = "gpt-image-1";
/// Longest text in the configuration of a tool.
const TEXT_CHARS_MAX: usize = 256;
/// Most bytes of an image, and of an answer that carries one as text.
const IMAGE_BYTES_MAX: usize = 20 << 20;
const ANSWER_BYTES_MAX: usize = IMAGE_BYTES_MAX / 3 * 4 + (1 << 16);
/// How much of an answer that is an error the model is told.
const ERROR_CHARS_MAX: usize = 1_000;

/// Who makes images for tools that name nobody.
#[derive(Debug, Clone, Default)]
pub struct Images {
    /// Where, when not at OpenAI's.
    pub base_url: Option<Url>,
    /// The key there.
    pub key: Option<Secret>,
    /// The model there.
    pub model: Option<String>,
}

impl Images {
    /// What may be reached besides the public internet: the operator's own server.
    pub(crate) fn allow(&self) -> AllowList {
        self.base_url.as_ref().map(AllowList::only).unwrap_or_default()
    }
}

/// An image from a model, as an agent's author describes it.
#[derive(Debug, PartialEq)]
struct ImageCall {
    /// The model's name.
    model: Option<String>,
    /// Where, when not at the operator's server.
    base_url: Option<String>,
    /// The key, when it brings its own.
    api_key: Option<Secret>,
    /// Such as `1024x1024`.
    size: Option<String>,
}

/// The source of `image-generator` tools. None is listed: each is defined by its configuration.
pub(crate) struct ImageSource {
    pub outbound: Outbound,
    pub workspace: Workspace,
}

/// Makes one image as the settings of its project say.
struct Painter<'a> {
    images: &'a Images,
    /// May reach the operator's own server.
    own: Client,
    client: Client,
    secrets: &'a Secrets,
    workspace: &'a Workspace,
}

#[async_trait]
impl ToolSource for ImageSource {
    fn name(&self) -> &'static str {
        "image-generator"
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["image-generator"]
    }
    fn read(&self, tool: &Members<'_>, _: &ToolList) -> Option<Binding> {
        config(tool);
        let usual = json!({ "parameters": {
            "type": "object", "properties": { "prompt": { "type": "string" } }, "required": ["prompt"],
        } });
        let written = tool.get("execution").map_or_else(Json::null, Json::from);
        Some(Binding::configured("image-generator", written, usual))
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let call = configured(tool, |tool| Some(config(tool)))?;
        let (world, client) = self.outbound.of(context).await?;
        let painter = Painter {
            images: &world.images,
            own: self
                .outbound
                .within(context)
                .client(Policy::public(world.images.allow())),
            client,
            secrets: &world.secrets,
            workspace: &self.workspace,
        };
        let output = painter.run(&call, &input.to_value(), context).await?;
        Ok(Json::from(output).into())
    }
}

fn config(tool: &Members<'_>) -> ImageCall {
    let call = tool.section("execution", &["model", "baseUrl", "apiKey", "size"]);
    let text = |name| Some(call.as_ref()?.text(name, TEXT_CHARS_MAX)?.to_owned());
    if let (Some(call), Some(url)) = (&call, text("baseUrl"))
        && !url.starts_with("https://")
        && !url.starts_with("http://")
    {
        let words = "expected an address that begins with https:// or http://";
        call.wrong("baseUrl", format!("{words}, got {}", preview(&url)));
    }
    ImageCall {
        model: text("model"),
        base_url: text("baseUrl"),
        api_key: text("apiKey").map(Secret::new),
        size: text("size"),
    }
}

#[derive(Deserialize)]
struct Reply {
    data: Vec<Picture>,
}

#[derive(Deserialize)]
struct Picture {
    b64_json: Option<String>,
    url: Option<String>,
}

/// Server to ask: a client that may reach it, its address, and its key.
struct Studio<'p> {
    client: &'p Client,
    base_url: String,
    key: Option<String>,
}

impl Painter<'_> {
    /// Makes an image, keeps it, and says where.
    async fn run(
        &self,
        call: &ImageCall,
        input: &Value,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let studio = self.studio(call)?;
        context.tell("waiting for the image");
        let answer = studio.client.send(self.ask(call, input, &studio)?).await;
        let answer = answer.map_err(outbound::failed)?;
        let picture = read(&answer, studio.key.as_deref(), self.secrets)?;
        let data = match picture {
            Picture {
                b64_json: Some(text), ..
            } => STANDARD
                .decode(text.as_bytes())
                .map_err(|_| CallFailure::failed("the image arrived damaged"))?,
            Picture { url: Some(url), .. } => fetch(&url, studio.client).await?,
            Picture { .. } => return Err(CallFailure::failed("the answer holds no image")),
        };
        let (mime, ending) = kind(&data).ok_or_else(|| CallFailure::failed("what was made is no image"))?;
        context.tell("keeping the image");
        let new = NewFile {
            name: format!("images/{}.{ending}", context.call)
                .parse()
                .expect("a call's id is a plain word"),
            mime: Some(mime.parse().expect("a media type")),
            data,
            only: Only::Always,
        };
        let told = |file: &FileInfo| {
            let url = format!("/v1/spaces/{}/files/{}", context.space, file.path);
            json!({"url": url, "path": file.path, "version": file.version, "mediaType": mime})
        };
        let receipt = |file: &FileInfo| context.receipt(told(file).into());
        let written = self
            .workspace
            .write_once(place(context), new, context.now, receipt)
            .await;
        Ok(told(&written.map_err(failure)?))
    }

    /// The gateway's key goes to the gateway's server only.
    fn studio(&self, call: &ImageCall) -> Result<Studio<'_>, CallFailure> {
        let own_key = call
            .api_key
            .as_ref()
            .map(|key| self.secrets.fill(key.expose(), str::to_owned));
        let own_key = own_key.transpose().map_err(|name| {
            CallFailure::unavailable(format!(
                "the gateway has no secret named {name:?}; its operator has to set one"
            ))
        })?;
        Ok(match &call.base_url {
            Some(base_url) => Studio {
                client: &self.client,
                base_url: base_url.clone(),
                key: own_key,
            },
            None => Studio {
                client: &self.own,
                base_url: self
                    .images
                    .base_url
                    .as_ref()
                    .map_or(ADDRESS.to_owned(), Url::to_string),
                key: own_key.or_else(|| self.images.key.as_ref().map(|key| key.expose().to_owned())),
            },
        })
    }

    fn ask(&self, call: &ImageCall, input: &Value, studio: &Studio<'_>) -> Result<Request, CallFailure> {
        let Some(prompt) = input["prompt"].as_str() else {
            let words = "the input has no \"prompt\" that says what to show";
            return Err(CallFailure::new(ErrorCode::ValidationFailed, words));
        };
        let model = call
            .model
            .as_deref()
            .or(self.images.model.as_deref())
            .unwrap_or(MODEL);
        let mut body = json!({"model": model, "prompt": prompt, "n": 1});
        if let Some(size) = &call.size {
            body["size"] = size.as_str().into();
        }
        let url = Url::parse(&format!(
            "{}/images/generations",
            studio.base_url.trim_end_matches('/')
        ))
        .map_err(|_| CallFailure::unavailable("the address of the image server is none"))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &studio.key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| CallFailure::unavailable("the key of the image server cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(Request {
            method: Method::POST,
            url,
            headers,
            body: Some(body.to_string().into()),
            limit: BodyLimit::Whole(ANSWER_BYTES_MAX),
        })
    }
}

fn read(answer: &Response, key: Option<&str>, secrets: &Secrets) -> Result<Picture, CallFailure> {
    if !answer.status.is_success() {
        let text = String::from_utf8_lossy(&answer.body);
        let text = key.map_or(text.to_string(), |key| text.replace(key, "[key]"));
        let start: String = secrets.hide(&text).chars().take(ERROR_CHARS_MAX).collect();
        return Err(CallFailure::failed(format!(
            "the image server answered {}: {}",
            answer.status,
            start.trim()
        )));
    }
    let reply: Reply = serde_json::from_slice(&answer.body)
        .map_err(|_| CallFailure::failed("the image server's answer cannot be read"))?;
    let none = || CallFailure::failed("the answer holds no image");
    reply.data.into_iter().next().ok_or_else(none)
}

/// An image that is kept elsewhere. Its address comes from a server, so it is checked like any other.
async fn fetch(url: &str, client: &Client) -> Result<Vec<u8>, CallFailure> {
    let url = Url::parse(url).map_err(|_| CallFailure::failed("the image's address is none"))?;
    let ask = Request {
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: None,
        limit: BodyLimit::Whole(IMAGE_BYTES_MAX),
    };
    let answer = client.send(ask).await.map_err(outbound::failed)?;
    if !answer.status.is_success() {
        return Err(CallFailure::failed(format!(
            "the image's address answered {}",
            answer.status
        )));
    }
    Ok(answer.body)
}

/// What an image is, by its first bytes: never what somebody says.
fn kind(data: &[u8]) -> Option<(&'static str, &'static str)> {
    match data {
        [0x89, b'P', b'N', b'G', ..] => Some(("image/png", "png")),
        [0xff, 0xd8, 0xff, ..] => Some(("image/jpeg", "jpg")),
        [b'G', b'I', b'F', b'8', ..] => Some(("image/gif", "gif")),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(("image/webp", "webp")),
        _ => None,
    }
}
