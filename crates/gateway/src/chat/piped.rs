//! A chat without a terminal: one message from standard input, the answer to standard output.

use std::io::Read as _;

use anyhow::{Context as _, anyhow, bail};
use futures_util::StreamExt as _;
use tokio::signal::unix::{SignalKind, signal};
use toolgate_client::events::{Event as Body, Status};
use toolgate_client::{Chunk, Client, Connection, Event, Pause, Reply, RunId, ToolError};
use toolgate_kernel::tool::Placement;

use super::Chat;
use crate::output::{self, Reader};

/// Sends the message on standard input. Fails if the run did not complete.
pub async fn run(client: &Client, flags: &Chat) -> anyhow::Result<()> {
    let mut message = String::new();
    std::io::stdin()
        .read_to_string(&mut message)
        .context("standard input is not UTF-8 text")?;
    let message = message.trim();
    if message.is_empty() {
        bail!("there is no message, write one to standard input or start in a terminal");
    }
    let mut request = flags.request(message, flags.space);
    if flags.wait {
        request = request.until_end();
    }
    if !flags.yes {
        // Only calls of local tools are claimed: other clients can claim the rest at once.
        let ours = client.client_tool_definitions().into_iter().map(|tool| tool.name);
        request = request.only(ours).on_tool_call(|_| async {
            let refusal = ToolError::new("the user has not allowed local tools to run, --yes allows it");
            Some(Err(refusal))
        });
    }
    // Before anything is sent, and one for all: no Ctrl-C is lost between two chunks.
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut chat = client.chat_stream(request);
    let mut run = None;
    let mut is_stopping = false;
    loop {
        tokio::select! {
            chunk = chat.next() => match chunk {
                Some(Ok(Chunk::Started { run, .. })) if is_stopping => return stop(client, run).await,
                Some(Ok(Chunk::Started { run: started, .. })) => run = Some(started),
                Some(Ok(Chunk::Event(event))) if flags.json => {
                    // The reader has closed the pipe; the run continues at the gateway.
                    if print(event.json.as_str())? == Reader::Gone {
                        return Ok(());
                    }
                }
                Some(Ok(Chunk::Event(event))) if flags.wait => tell_wait(&event, client),
                Some(Ok(Chunk::Connection(Connection::Lost { reason }))) => {
                    eprintln!("waiting for the gateway: {reason}");
                }
                Some(Ok(Chunk::Connection(Connection::Up))) => eprintln!("the gateway answers again"),
                Some(Ok(Chunk::Finished(reply))) => return finish(&reply, flags.json),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(flags.explained(error)),
                None => bail!("the chat stream ended early"),
            },
            _ = interrupts.recv() => match run {
                Some(run) => return stop(client, run).await,
                None if is_stopping => bail!("interrupted, the message may have started a run"),
                // The message is on its way: its run is cancelled as soon as its id is known.
                None => {
                    is_stopping = true;
                    eprintln!("stopping, Ctrl-C again leaves without waiting for the gateway");
                }
            },
        }
    }
}

/// Says that the run waits for somebody else; on standard error, because the output is the answer.
fn tell_wait(event: &Event, client: &Client) {
    match &event.body {
        Some(Body::ToolApprovalRequest(asked)) => eprintln!("waiting for an approval of {}", asked.tool_name),
        Some(Body::ToolInputAvailable(call))
            if call.placement == Placement::Client && !client.has_tool(&call.tool_name) =>
        {
            eprintln!("waiting for a client that has the tool {}", call.tool_name);
        }
        _ => {}
    }
}

fn finish(reply: &Reply, json: bool) -> anyhow::Result<()> {
    if !json && !reply.text.is_empty() {
        print(&reply.text)?;
    }
    let why = reply.error.as_deref().unwrap_or("no reason was given");
    match (reply.status, reply.pause) {
        (Status::Completed, _) => Ok(()),
        (_, Some(Pause::ToolRounds)) => Err(anyhow!(
            "local tools ran in as many steps as --max-tool-rounds allows"
        )),
        (Status::WaitingApproval, _) => Err(anyhow!(
            "the run {} waits for an approval, decide it over HTTP, --wait keeps waiting for it",
            reply.run
        )),
        (_, Some(Pause::Waiting)) => Err(anyhow!(
            "the run {} in {} waits for a client that has the tool, --wait keeps waiting for it",
            reply.run,
            reply.space
        )),
        (Status::Cancelled, _) => Err(anyhow!("the run was cancelled")),
        _ => Err(anyhow!("the run failed: {why}")),
    }
}

async fn stop(client: &Client, run: RunId) -> anyhow::Result<()> {
    client.runs().cancel(run).await?;
    bail!("interrupted");
}

fn print(line: &str) -> anyhow::Result<Reader> {
    Ok(output::print(&format!("{line}\n"))?)
}
