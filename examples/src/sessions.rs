//! A web service that counts visits: `POST /visits/NAME` adds one to those of a user, `GET` tells
//! their number. A reply is sent once what it says is durable.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use indelible::collections::{PHashMap, PMutex, PString};
use indelible::{Heap, Pool};
use std::sync::Arc;

type Visits<'h> = PMutex<'h, PHashMap<'h, PString<'h>, u64>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("sessions.pmo".into());
    let mut heap = Pool::open_or_format(path, 64 << 20)?.heap("sessions", 1 << 20)?;
    heap.root_or_insert_with::<Visits, _>("visits", |place| PMutex::new_in(PHashMap::new(), place))?;
    let service = Router::new().route("/visits/{user}", get(visits).post(visit));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening at {}", listener.local_addr()?);
    Ok(axum::serve(listener, service.with_state(Arc::new(heap))).await?)
}

async fn visit(State(heap): State<Arc<Heap>>, Path(user): Path<String>) -> Result<String, Failure> {
    let visits = heap.root_in_task::<Visits>("visits")?;
    let count = {
        let mut visits = visits.lock();
        let count = visits.entry(&*user).or_insert(0);
        *count += 1;
        *count
    }; // The lock ends here: no task keeps one across an `.await`.
    heap.commit().await?;
    Ok(format!("{count}\n"))
}

async fn visits(State(heap): State<Arc<Heap>>, Path(user): Path<String>) -> Result<String, Failure> {
    let visits = heap.root_in_task::<Visits>("visits")?;
    let count = visits.lock().get(&*user).copied();
    heap.commit().await?; // Another task may have just changed it.
    Ok(format!("{}\n", count.unwrap_or(0)))
}

/// An error as a reply.
struct Failure(indelible::Error);

impl From<indelible::Error> for Failure {
    fn from(error: indelible::Error) -> Failure {
        Failure(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, format!("{}\n", self.0)).into_response()
    }
}
