CREATE SEQUENCE IF NOT EXISTS outbox_event_seq;

CREATE TABLE IF NOT EXISTS outbox_event (
  seq bigint NOT NULL DEFAULT nextval('outbox_event_seq'),
  event_id varchar(36) COLLATE "C" PRIMARY KEY,
  event_type varchar(128) NOT NULL,
  aggregate_type varchar(64),
  aggregate_id varchar(128),
  tenant_id varchar(64),
  payload bytea NOT NULL,
  content_type varchar(128) NOT NULL DEFAULT 'application/json',
  headers text,
  status smallint NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  available_at timestamptz(6) NOT NULL DEFAULT statement_timestamp(),
  created_at timestamptz(6) NOT NULL DEFAULT statement_timestamp(),
  occurred_at timestamptz(6) NOT NULL DEFAULT statement_timestamp(),
  done_at timestamptz(6),
  last_error text,
  locked_by varchar(128),
  locked_at timestamptz(6),
  bucket smallint NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX IF NOT EXISTS idx_status_available ON outbox_event (available_at, seq) WHERE status IN (0, 2);

CREATE INDEX IF NOT EXISTS idx_bucket ON outbox_event (bucket, seq) WHERE status IN (0, 2);

CREATE INDEX IF NOT EXISTS idx_terminal ON outbox_event (COALESCE(done_at, created_at)) WHERE status IN (1, 3);

CREATE INDEX IF NOT EXISTS idx_dead ON outbox_event (seq) WHERE status = 3;

CREATE TABLE IF NOT EXISTS outbox_event_bucket (
  bucket smallint PRIMARY KEY, owner varchar(128), epoch bigint NOT NULL DEFAULT 0, expires_at timestamptz(6)
);

CREATE TABLE IF NOT EXISTS outbox_event_node (owner varchar(128) PRIMARY KEY, expires_at timestamptz(6) NOT NULL);
