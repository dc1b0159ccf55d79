//! Paths and their contents. The pool is opened for each request, in constant time, so that the
//! page finds a replaced pool.

use super::answer::{Answer, Status};
use super::index::Kept;
use super::look::{Found, Look, Missing};
use super::query::Query;
use super::request::Request;
use super::token::Token;
use super::{graph, heap, object, objects, overview, snapshots, space};
use indelible::PoolOptions;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = concat!(
    include_str!("page/elements.js"),
    include_str!("page/server.js"),
    include_str!("page/overview.js"),
    include_str!("page/objects.js"),
    include_str!("page/tree.js"),
    include_str!("page/object.js"),
    include_str!("page/space.js"),
    include_str!("page/snapshots.js"),
    include_str!("page/graph.js"),
    include_str!("page/page.js"),
);

pub struct Site {
    options: PoolOptions,
    path: PathBuf,
    kept: Kept,
}

impl Site {
    pub fn new(options: PoolOptions, path: &Path) -> Site {
        Site { options: options.read_only(true), path: path.to_owned(), kept: Kept::default() }
    }

    pub fn answer(&self, request: &Request, token: &Token) -> Answer {
        let query = &request.query;
        let found = match request.path.as_str() {
            "/" => Ok(Answer::text("text/html", PAGE.replace("TOKEN", token.text()))),
            "/style.css" => Ok(Answer::text("text/css", STYLE)),
            "/script.js" => Ok(Answer::text("text/javascript", SCRIPT)),
            "/api/overview" => self.look(query, overview::answer),
            "/api/objects" => self.look(query, objects::answer),
            "/api/object" => self.look(query, object::answer),
            "/api/heap" => self.look(query, heap::answer),
            "/api/space" => self.look(query, space::answer),
            "/api/snapshots" => self.look(query, snapshots::answer),
            "/api/graph" => self.look(query, graph::answer),
            _ => Err(Status::NotFound.into()),
        };
        match found {
            Ok(answer) => answer,
            Err(Missing::Refused(status)) => status.into(),
            Err(Missing::Failed(failure)) => (&failure).into(),
        }
    }

    fn look(&self, query: &Query, answer: fn(&Look<'_>, &Query) -> Found<Answer>) -> Found<Answer> {
        let pool = self.options.open(&self.path)?;
        answer(&Look { pool, kept: &self.kept, path: &self.path }, query)
    }
}
