CREATE TABLE IF NOT EXISTS outbox_event (
  seq bigint NOT NULL AUTO_INCREMENT,
  event_id varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  event_type varchar(128) NOT NULL,
  aggregate_type varchar(64),
  aggregate_id varchar(128),
  tenant_id varchar(64),
  payload longblob NOT NULL,
  content_type varchar(128) NOT NULL DEFAULT 'application/json',
  headers mediumtext,
  status tinyint NOT NULL DEFAULT 0,
  attempts int NOT NULL DEFAULT 0,
  available_at datetime(6) NOT NULL,
  created_at datetime(6) NOT NULL,
  occurred_at datetime(6) NOT NULL,
  done_at datetime(6),
  last_error text,
  locked_by varchar(128),
  locked_at datetime(6),
  bucket smallint NOT NULL DEFAULT 0,
  pending_at datetime(6) GENERATED ALWAYS AS (CASE WHEN status IN (0, 2) THEN available_at END) VIRTUAL,
  pending_bucket smallint GENERATED ALWAYS AS (CASE WHEN status IN (0, 2) THEN bucket END) VIRTUAL,
  terminal_at datetime(6) GENERATED ALWAYS AS (CASE WHEN status IN (1, 3) THEN COALESCE(done_at, created_at) END) VIRTUAL,
  dead_at datetime(6) GENERATED ALWAYS AS (CASE WHEN status = 3 THEN COALESCE(done_at, created_at) END) VIRTUAL,
  UNIQUE KEY idx_seq (seq),
  KEY idx_status_available (pending_at, seq),
  KEY idx_bucket (pending_bucket, seq),
  KEY idx_terminal (terminal_at),
  KEY idx_dead (dead_at)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS outbox_event_bucket (
  bucket smallint PRIMARY KEY, owner varchar(128), epoch bigint NOT NULL DEFAULT 0, expires_at datetime(6)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS outbox_event_node (owner varchar(128) PRIMARY KEY, expires_at datetime(6) NOT NULL) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
