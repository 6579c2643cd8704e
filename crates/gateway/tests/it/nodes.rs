//! Three nodes of the real binary on a real PostgreSQL and Redis: any request on any node, and nothing that was
//! acknowledged is lost or done twice, whatever goes away meanwhile.

mod across;
mod balancer;
mod cable;
mod channels;
mod cluster;
mod fail_over;
mod intake;
mod namespaces;
mod outages;
mod restarts;
mod storm;
mod tls;
mod versions;
