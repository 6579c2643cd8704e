//! Refuses query parameters that a route does not know. A filter that is misspelt would otherwise be left out without a word,
//! and the caller would take everything for what it asked for.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::Method;
use toolgate_kernel::guess::hint;
use toolgate_kernel::problem::preview;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use crate::problem::Refusal;
use crate::query::Query;

/// Credentials of browsers that cannot send headers; who is asking is read elsewhere.
const CREDENTIALS: [&str; 2] = ["key", "token"];

/// The query parameters that each route is described with.
pub struct KnownQuery(HashMap<(Method, String), Vec<String>>);

impl KnownQuery {
    /// Those of these routes.
    pub fn of(routes: &OpenApi) -> Self {
        let paths = routes.paths.paths.iter();
        let operations = paths.flat_map(|(path, item)| {
            let described =
                methods(item).filter_map(|(method, operation)| Some((method, operation.as_ref()?)));
            described.map(|(method, operation)| ((method, path.clone()), names(operation)))
        });
        Self(operations.collect())
    }

    /// Without the route of this path: others decide what is sent to it.
    pub fn except(mut self, path: &str) -> Self {
        self.0.retain(|(_, known), _| known != path);
        self
    }

    /// Wraps the routes.
    pub fn guard(self, routes: Router) -> Router {
        routes.route_layer(from_fn_with_state(Arc::new(self), check))
    }

    fn refusal(&self, request: &Request) -> Option<Refusal> {
        request.uri().query()?;
        let route = request.extensions().get::<MatchedPath>()?.as_str().to_owned();
        let method = match request.method() {
            &Method::HEAD => Method::GET,
            other => other.clone(),
        };
        let known = self.0.get(&(method, route))?;
        let query = match Query::of(request.uri()) {
            Ok(query) => query,
            Err(refusal) => return Some(refusal),
        };
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let name = query
            .names()
            .find(|name| !known.contains(name) && !CREDENTIALS.contains(name))?;
        let hint = match known.is_empty() {
            true => "this route has no query parameters".to_owned(),
            false => hint(name, &known),
        };
        Some(Refusal::malformed(format!(
            "query {}: is not known here; {hint}",
            preview(name)
        )))
    }
}

async fn check(State(known): State<Arc<KnownQuery>>, request: Request, next: Next) -> Response {
    match known.refusal(&request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    }
}

fn methods(item: &PathItem) -> impl Iterator<Item = (Method, &Option<Operation>)> {
    [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::DELETE, &item.delete),
        (Method::PATCH, &item.patch),
    ]
    .into_iter()
}

fn names(operation: &Operation) -> Vec<String> {
    let described = operation.parameters.iter().flatten();
    let in_query = described.filter_map(|parameter| match parameter {
        RefOr::T(Parameter {
            name,
            parameter_in: ParameterIn::Query,
            ..
        }) => Some(name.clone()),
        RefOr::T(_) | RefOr::Ref(_) => None,
    });
    in_query.collect()
}
