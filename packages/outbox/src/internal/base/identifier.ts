/** The one check that every table name from outside has to pass (ruling 48). */
import { Kinds } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { InvalidIdentifier } from "../../OutboxError.ts"

// 40 characters leave room for the suffixes of derived names (indexes, bucket and node tables) within PostgreSQL's 63 bytes.
const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/

/**
 * Words that PostgreSQL, MySQL 8, MariaDB or SQLite reserve: a statement with a table of that name is a syntax error, on one database or on all. Nothing quotes names.
 */
const reserved: ReadonlySet<string> = new Set(
  `accessible add all alter analyse analyze and any array as asc asensitive asymmetric authorization before between bigint binary blob both by call cascade case cast
  change char character check collate collation column concurrently condition constraint continue convert create cross cube cume_dist current_catalog current_date
  current_path current_role current_schema current_time current_timestamp current_user cursor database databases day_hour day_microsecond day_minute day_second dec
  decimal declare default deferrable delayed delete dense_rank desc describe deterministic distinct distinctrow div do double drop dual each else elseif empty enclosed
  end escape escaped except exists exit explain false fetch first_value float float4 float8 for force foreign freeze from full fulltext function generated get glob grant
  group grouping groups having high_priority hour_microsecond hour_minute hour_second if ignore ilike in index infile initially inner inout insensitive insert int int1 int2
  int3 int4 int8 integer intersect interval into io_after_gtids io_before_gtids is isnull iterate join json_table key keys kill lag last_value lateral lead leading leave
  left like limit linear lines load localtime localtimestamp lock long longblob longtext loop low_priority master_bind match maxvalue mediumblob mediumint mediumtext
  middleint minute_microsecond minute_second mod modifies natural no_write_to_binlog not notnull nth_value ntile null numeric of offset on only optimize optimizer_costs
  option optionally or order out outer outfile over overlaps partition percent_rank period_for_system_time placing precision primary procedure purge range rank read
  read_write reads real recursive references regexp release rename repeat replace require resignal restrict return returning revoke right rlike row row_number rows schema
  schemas second_microsecond select sensitive separator session_user set show signal similar smallint some spatial specific sql sql_big_result sql_calc_found_rows
  sql_small_result sqlexception sqlstate sqlwarning ssl starting stored straight_join symmetric system system_user table tablesample terminated then tinyblob tinyint tinytext
  to trailing transaction trigger true undo union unique unlock unsigned update usage use user using utc_date utc_time utc_timestamp values varbinary varchar varcharacter
  variadic varying verbose virtual when where while window with write xor year_month zerofill`.split(/\s+/)
)

/**
 * Accepts a table name, optionally qualified by a schema (`app.outbox_event`). Each part has 1 to 40 ASCII letters, digits and
 * underscores, does not start with a digit, and is no reserved word of SQL.
 */
export const checkTableName = (name: string): Effect.Effect<string, InvalidIdentifier> => {
  const [kindProblem] = Kinds.string("table", name)
  const parts = kindProblem === undefined ? name.split(".") : []
  const isLegal = parts.length === 1 || parts.length === 2
  return isLegal && parts.every((part) => identifier.test(part) && !reserved.has(part.toLowerCase()))
    ? Effect.succeed(name)
    : Effect.fail(new InvalidIdentifier({ what: "table name", name: kindProblem?.found ?? name }))
}
