//! How a server is reached: what it may reach itself, its secrets, its sign-in, its process.

use std::sync::Arc;

use serde_json::Value;
use toolgate_egress::{Policy, Secrets};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::problem::{Problem, member};
use toolgate_mcp::{Abilities, Keeper, Server};
use toolgate_worker::{KEEP_SERVER, KeptLimits};

use crate::config::{Reach, ServerConfig};
use crate::error::ServerError;
use crate::oauth::{self, Auth, Identity};
use crate::servers::Inner;
use crate::settings::McpSettings;
use crate::snapshot::{Configured, Origin};
use crate::supervisor::{Open, Spec};

impl Inner {
    /// Reads a configuration that is not the operator's, and checks what it may reach.
    pub fn check(
        &self,
        written: &Value,
        pointer: &str,
        settings: &McpSettings,
    ) -> Result<ServerConfig, ServerError> {
        let config = ServerConfig::read(written, pointer).map_err(ServerError::Invalid)?;
        match &config.reach {
            Reach::Command { program, .. } if !settings.commands.permits(program) => {
                Err(ServerError::Command(program.clone()))
            }
            Reach::Command { .. } => Ok(config),
            Reach::Http { url, .. } => {
                let client = self.egress.client(Policy::public(settings.allow.clone()));
                match client.check(url) {
                    Ok(()) => Ok(config),
                    Err(refused) => {
                        let words =
                            format!("{refused}; the setting `outside.allow` permits addresses inside");
                        let problem = Problem::new(member(pointer, "url"), words);
                        Err(ServerError::Invalid(vec![problem]))
                    }
                }
            }
        }
    }

    /// Starts or reaches a server and has it list its tools.
    pub async fn connect(&self, spec: &Spec) -> Result<Open, String> {
        let unread = |error: StoreError| format!("its settings cannot be read: {error}");
        let settings = self.resolver.mcp_settings(spec.project).await.map_err(unread)?;
        let snapshot = self.cache.snapshot(spec.project).await.map_err(unread)?;
        let known = snapshot.catalogs.get(&spec.key);
        let known = known.filter(|known| known.fingerprint == spec.configured.config.fingerprint());
        let identity = Identity {
            project: spec.project,
            server: spec.key.clone(),
        };
        let server = self.signed_in(
            self.server(&spec.configured, &settings)?,
            &identity,
            &spec.configured,
            &settings,
        )?;
        let server = server
            .protocol(known.map(|known| known.protocol.clone()))
            .abilities(Abilities {
                elicitation: true,
                sampling: spec.configured.config.sampling,
                tasks: true,
            });
        let process = match &spec.configured.config.reach {
            Reach::Command { .. } => Some(self.pool.process(spec.project)?),
            Reach::Http { .. } => None,
        };
        let secrets = snapshot.secrets.get(&spec.key).cloned();
        let secrets = secrets.unwrap_or_else(|| settings.secrets.clone());
        let server = self.logged(server, spec.project, &spec.key, &secrets);
        let hidden = |words: String| secrets.hide(&words);
        let connection = server.connect().await.map_err(|error| {
            self.noted(&identity, error.needs_authorization().is_some());
            hidden(error.to_string())
        })?;
        let tools = connection.list_raw().await.map_err(|error| {
            self.noted(&identity, error.needs_authorization().is_some());
            hidden(error.into())
        })?;
        self.noted(&identity, false);
        self.listed(spec, connection.about(), tools).await?;
        Ok(Open {
            connection,
            secrets,
            _process: process,
        })
    }

    /// The server, whose standard error goes to its log without these secrets.
    pub fn logged(&self, server: Server, project: ProjectId, key: &str, secrets: &Secrets) -> Server {
        let secrets = secrets.clone();
        let hide = Arc::new(move |words: &str| secrets.hide(words));
        let log = self.logs.writer(self.clock.clone(), project, key);
        server.hide(hide).log(log)
    }

    /// The server, with whoever signs in to it.
    pub fn signed_in(
        &self,
        server: Server,
        identity: &Identity,
        configured: &Configured,
        settings: &McpSettings,
    ) -> Result<Server, String> {
        let Some(identities) = &self.identities else {
            return Ok(server);
        };
        Ok(match identities.authorizer(identity, configured, settings)? {
            Some(authorizer) => server.authorizer(authorizer),
            None => server,
        })
    }

    pub async fn forget_tokens(&self, project: ProjectId, key: &str) -> Result<(), StoreError> {
        let identity = Identity {
            project,
            server: key.to_owned(),
        };
        oauth::forget(&self.updater, &*self.clock, &identity).await
    }

    /// Notes whether a server waits for a person to sign in.
    pub fn noted(&self, identity: &Identity, is_needed: bool) {
        if let Some(identities) = &self.identities {
            identities.needed(identity, is_needed);
        }
    }

    /// The server with its secrets, if it may be reached.
    pub fn server(&self, configured: &Configured, settings: &McpSettings) -> Result<Server, String> {
        let fill = |text: &String| {
            let filled = settings.secrets.fill(text, str::to_owned);
            filled.map_err(|name| format!("the secret {name:?} is not set; add it to the project's settings"))
        };
        let is_operators = configured.origin == Origin::Settings;
        match &configured.config.reach {
            Reach::Http { url, headers, auth } => {
                let policy = match is_operators {
                    true => Policy::server(url),
                    false => Policy::public(settings.allow.clone()),
                };
                let client = self.egress.client(policy).streaming(url);
                let client = client.map_err(|refused| refused.to_string())?;
                let mut server = Server::http(&configured.name, url.as_str()).client(client);
                for (name, value) in headers {
                    let bad = |_| format!("the header {name:?} cannot be sent");
                    let name_of = name
                        .parse()
                        .map_err(|_| format!("{name:?} is no name of a header"))?;
                    let mut value = http::HeaderValue::try_from(fill(value)?).map_err(bad)?;
                    value.set_sensitive(true);
                    server = server.header(name_of, value);
                }
                if let Auth::Bearer(token) = auth {
                    let value = http::HeaderValue::try_from(format!("Bearer {}", fill(token)?));
                    let mut value =
                        value.map_err(|_| "the token of \"auth\" cannot be sent in a header".to_owned())?;
                    value.set_sensitive(true);
                    server = server.header(http::header::AUTHORIZATION, value);
                }
                Ok(server)
            }
            Reach::Command {
                program,
                arguments,
                environment,
                directory,
                memory_bytes,
                cpu_seconds,
                files,
                sandbox,
            } => {
                if !is_operators && !settings.commands.permits(program) {
                    return Err(ServerError::Command(program.clone()).to_string());
                }
                let server = Server::command(&configured.name, program, arguments);
                let mut server = server.inherit(self.spawning.environment.iter().cloned());
                for (name, value) in environment {
                    server = server.env(name, fill(value)?);
                }
                if let Some(directory) = directory {
                    server = server.directory(directory);
                }
                if sandbox.is_some() && self.spawning.keeper.is_none() {
                    return Err("a server with \"sandbox\" needs a keeper, and this gateway has none".into());
                }
                if let Some(gateway) = &self.spawning.keeper {
                    let limits = KeptLimits {
                        memory_bytes: *memory_bytes,
                        cpu_seconds: *cpu_seconds,
                        files: *files,
                        confined: sandbox.clone(),
                    };
                    let mut arguments = vec![KEEP_SERVER.into()];
                    arguments.extend(limits.arguments());
                    server = server.keeper(Keeper {
                        program: gateway.clone(),
                        arguments,
                    });
                }
                Ok(server)
            }
        }
    }
}
