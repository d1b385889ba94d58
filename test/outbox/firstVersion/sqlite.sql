CREATE TABLE IF NOT EXISTS outbox_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  event_type TEXT NOT NULL,
  aggregate_type TEXT,
  aggregate_id TEXT,
  tenant_id TEXT,
  payload BLOB NOT NULL,
  content_type TEXT NOT NULL DEFAULT 'application/json',
  headers TEXT,
  status INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  occurred_at INTEGER NOT NULL,
  done_at INTEGER,
  last_error TEXT,
  locked_by TEXT,
  locked_at INTEGER,
  bucket INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS idx_status_available ON outbox_event (available_at, seq) WHERE status IN (0, 2);

CREATE INDEX IF NOT EXISTS idx_bucket ON outbox_event (bucket, seq) WHERE status IN (0, 2);

CREATE INDEX IF NOT EXISTS idx_terminal ON outbox_event (COALESCE(done_at, created_at)) WHERE status IN (1, 3);

CREATE INDEX IF NOT EXISTS idx_dead ON outbox_event (seq) WHERE status = 3;

CREATE TABLE IF NOT EXISTS outbox_event_bucket (bucket INTEGER PRIMARY KEY, owner TEXT, epoch INTEGER NOT NULL DEFAULT 0, expires_at INTEGER);

CREATE TABLE IF NOT EXISTS outbox_event_node (owner TEXT PRIMARY KEY, expires_at INTEGER NOT NULL);
