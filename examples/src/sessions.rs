//! A service of tokio that counts visits. A client sends the name of a user in each line; the
//! reply, sent once the visit is durable, has the user's number of visits.

use indelible::collections::{PHashMap, PMutex, PString};
use indelible::{Heap, Pool};
use std::error::Error;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

type Visits<'h> = PMutex<'h, PHashMap<'h, PString<'h>, u64>>;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or("sessions.pmo".into());
    let mut heap = Pool::open_or_format(path, 64 << 20)?.heap("sessions", 1 << 20)?;
    heap.root_or_insert_with::<Visits, _>("visits", |place| PMutex::new_in(PHashMap::new(), place))?;
    let heap = Arc::new(heap);
    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening at {}", listener.local_addr()?);
        loop {
            let (client, _) = listener.accept().await?;
            let heap = heap.clone();
            tokio::spawn(async move {
                if let Err(error) = serve(&heap, client).await {
                    eprintln!("{error}");
                }
            });
        }
    })
}

async fn serve(heap: &Heap, mut client: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    let visits = heap.root_in_task::<Visits>("visits")?;
    let (input, mut output) = client.split();
    let mut users = BufReader::new(input).lines();
    while let Some(user) = users.next_line().await? {
        let count = {
            let mut visits = visits.lock();
            let count = visits.entry(&*user).or_insert(0);
            *count += 1;
            *count
        }; // The lock ends here: no task keeps one across an `.await`.
        heap.commit().await?;
        output.write_all(format!("{user} {count}\n").as_bytes()).await?;
    }
    Ok(())
}
