//! One connection, with the statements that it has prepared.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;

use super::PostgresOptions;
use super::address::PostgresAddress;
use super::column::Param;
use super::fault::Fault;
use super::hosts::Hosts;

/// A connection to the server.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
    /// Passes messages to and from the server.
    _messages: AbortOnDropHandle<()>,
    /// Which of the pool's generations it is of.
    pub(crate) generation: u64,
    pub(crate) idle_since: Instant,
    hosts: Arc<Hosts>,
    /// How often the process had gone on with another server when it connected.
    switches: u64,
}

/// Statements that a connection has prepared, and whether it still answers.
pub(crate) struct Statements {
    prepared: Mutex<HashMap<Box<str>, Statement>>,
    /// Longest time for one answer: the server ends statements earlier, unless it hangs itself.
    answer_max: Duration,
    /// An answer did not come in time; the connection is of no use any more.
    stuck: AtomicBool,
}

/// How much longer than the server's own limit an answer may take.
const ANSWER_SLACK: Duration = Duration::from_secs(5);

/// Prepared statements kept per connection. Lists of runs make one for each combination of filters; beyond this all are
/// prepared again.
const STATEMENTS_KEPT: usize = 512;

impl Session {
    /// Connects, and makes sure that a commit means what it must.
    pub(crate) async fn open(
        address: &PostgresAddress,
        tls: MakeRustlsConnect,
        options: &PostgresOptions,
        generation: u64,
    ) -> Result<Self, Fault> {
        let ((client, connection), switches) = address.hosts.connect(&tls, options.connect_timeout).await?;
        let messages: JoinHandle<()> = tokio::spawn(async move {
            // Every statement under way gets the same error.
            let _ = connection.await;
        });
        let session = Self {
            client,
            statements: Statements {
                prepared: Mutex::default(),
                answer_max: options.statement_timeout + ANSWER_SLACK,
                stuck: AtomicBool::new(false),
            },
            _messages: AbortOnDropHandle::new(messages),
            generation,
            idle_since: Instant::now(),
            hosts: address.hosts.clone(),
            switches,
        };
        session.prepare_server(options).await?;
        Ok(session)
    }

    /// Settings of the connection. They are set rather than trusted, because the server or the user may have others.
    async fn prepare_server(&self, options: &PostgresOptions) -> Result<(), Fault> {
        let (statement, lock) = (
            options.statement_timeout.as_millis(),
            options.lock_timeout.as_millis(),
        );
        let idle = IDLE_IN_TRANSACTION.as_millis();
        let settings = format!(
            "SET statement_timeout = {statement}; SET lock_timeout = {lock};
             SET idle_in_transaction_session_timeout = {idle}; SET jit = off; SET client_min_messages = warning;
             SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')"
        );
        self.client.batch_execute(&settings).await?;
        const LASTING: &str = "SELECT current_setting('synchronous_commit') IN ('on', 'remote_apply')";
        let lasting: bool = self.client.query_typed_one(LASTING, &[]).await?.try_get(0)?;
        match lasting {
            true => Ok(()),
            false => Err(Fault::Failed(
                "the PostgreSQL server does not let this user set synchronous_commit = on".into(),
            )),
        }
    }

    pub(crate) fn db(&self) -> Db<'_> {
        Db {
            client: &self.client,
            statements: &self.statements,
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.is_stuck() && self.switches == self.hosts.switches()
    }

    /// Whether the server left something unanswered.
    pub(crate) fn is_stuck(&self) -> bool {
        self.statements.stuck.load(Ordering::Relaxed)
    }
}

/// How long a transaction may wait for its client, which may have been stopped while it holds locks.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);

/// What statements run on: a connection, within the transaction that it is in.
#[derive(Clone, Copy)]
pub(crate) struct Db<'a> {
    pub(crate) client: &'a Client,
    pub(crate) statements: &'a Statements,
}

impl Db<'_> {
    /// The statement, prepared on this connection.
    pub(crate) async fn prepare(&self, sql: &str) -> Result<Statement, Fault> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known);
        }
        let statement = self
            .answer(self.client.prepare(sql))
            .await?
            .map_err(Fault::from)?;
        self.statements.keep(sql, statement.clone());
        Ok(statement)
    }

    pub(crate) async fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(sql).await?;
        Ok(self.answer(self.client.query(&statement, params)).await??)
    }

    /// Runs a query that is planned for these very values. A plan for any values would take all projects for equally large, and
    /// walk the rows of a large one to find those of a small one.
    pub(crate) async fn query_planned(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        // The server plans the first executions of a statement for their values.
        let statement = self.answer(self.client.prepare(sql)).await??;
        Ok(self.answer(self.client.query(&statement, params)).await??)
    }

    pub(crate) async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
        let statement = self.prepare(sql).await?;
        Ok(self.answer(self.client.execute(&statement, params)).await??)
    }

    /// Runs a write that commits by itself.
    pub(crate) async fn execute_alone(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
        let statement = self.prepare(sql).await?;
        let done = self.answer(self.client.execute(&statement, params)).await;
        done.map_err(|_| Fault::Unknown)?.map_err(Fault::of_lone_write)
    }

    /// Runs a write that commits by itself and returns rows.
    pub(crate) async fn query_alone(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(sql).await?;
        let done = self.answer(self.client.query(&statement, params)).await;
        done.map_err(|_| Fault::Unknown)?.map_err(Fault::of_lone_write)
    }

    /// Begins or ends a transaction.
    pub(crate) async fn control(&self, sql: &str) -> Result<Result<(), Error>, Fault> {
        self.answer(self.client.batch_execute(sql)).await
    }

    /// Waits for an answer, but not for one that will not come: the server may be stopped or cut off.
    pub(crate) async fn answer<T>(&self, asked: impl Future<Output = T>) -> Result<T, Fault> {
        let answered = tokio::time::timeout(self.statements.answer_max, asked).await;
        answered.map_err(|_| {
            self.statements.stuck.store(true, Ordering::Relaxed);
            Fault::Again(format!(
                "PostgreSQL did not answer in {:?}",
                self.statements.answer_max
            ))
        })
    }
}

impl Statements {
    fn get(&self, sql: &str) -> Option<Statement> {
        let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        prepared.get(sql).cloned()
    }

    fn keep(&self, sql: &str, statement: Statement) {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if prepared.len() >= STATEMENTS_KEPT {
            prepared.clear();
        }
        prepared.insert(sql.into(), statement);
    }
}

#[cfg(test)]
mod tests {
    use toolgate_testkit::postgres_server::PostgresServer;

    use super::super::tls;
    use super::*;

    #[tokio::test]
    async fn a_commit_waits_for_the_disk_whatever_the_server_says() {
        let server = PostgresServer::shared();
        for (default, wanted) in [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")] {
            let url = server.database();
            let name = url.rsplit('/').next().unwrap();
            server.execute(
                "postgres",
                &format!("ALTER DATABASE {name} SET synchronous_commit = {default}"),
            );
            let address: PostgresAddress = url.parse().unwrap();
            let tls = tls::connector(&address.protection).unwrap();
            let session = Session::open(&address, tls, &PostgresOptions::default(), 0)
                .await
                .unwrap();
            let told = session
                .client
                .query_one("SHOW synchronous_commit", &[])
                .await
                .unwrap();
            assert_eq!(told.get::<_, String>(0), wanted);
        }
    }
}
