/** `outbox.write` on MariaDB, by `mysql2`: its connection, and a function over it. */
import { createOutbox, OutboxError, type OutboxTransaction, outboxStatements } from "@eventbus/node/outbox"
import { Effect, Redacted } from "effect"
import mysql from "mysql2/promise"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { mariadbService, mysqlLogin } from "../../../../test/outbox/clients.ts"
import { freshName } from "../../../../test/outbox/databases.ts"
import { problemOf } from "../../../../test/services/login.ts"
import { whenUsable } from "../../../../test/services/suites.ts"

const { host, port, username: user, password, database } = mysqlLogin
const login = { host, port, user, ...(password !== undefined && { password: Redacted.value(password) }) }

const problem = await problemOf(
  mariadbService,
  Effect.promise(async () => {
    const connection = await mysql.createConnection({ ...login, database })
    await connection.end()
  })
)

const outbox = createOutbox({ dialect: "mysql" })
const event = (key: string) => ({ topic: "orders", key, value: Buffer.from([0, 39, 255]), headers: { a: "'" } })

whenUsable("outbox.write on MariaDB", problem, () => {
  const name = freshName()
  const pool = mysql.createPool({ ...login, database: name })
  const keys = async () => {
    const [rows] = await pool.query<Array<mysql.RowDataPacket>>("SELECT * FROM outbox_event ORDER BY seq")
    return rows.map(({ aggregate_id, payload, headers }) => [aggregate_id, payload, headers])
  }

  beforeAll(async () => {
    const admin = await mysql.createConnection({ ...login, database })
    await admin.query(`CREATE DATABASE ${name}`)
    await admin.end()
    for (const statement of outboxStatements("mysql")) await pool.query(statement)
  })
  beforeEach(() => pool.query("DELETE FROM outbox_event"))
  afterAll(async () => {
    await pool.query(`DROP DATABASE ${name}`)
    await pool.end()
  })

  const transaction = async (work: (connection: mysql.PoolConnection) => Promise<unknown>) => {
    const connection = await pool.getConnection()
    try {
      await connection.beginTransaction()
      await work(connection)
      await connection.commit()
    } catch (error) {
      await connection.rollback()
      throw error
    } finally {
      connection.release()
    }
  }

  const stored = (key: string) => [key, Buffer.from([0, 39, 255]), '{"a":"\'"}']

  it.each([
    ["a connection", (connection: mysql.PoolConnection): OutboxTransaction => connection],
    [
      "a function that prepares",
      (connection: mysql.PoolConnection): OutboxTransaction =>
        (sql, params) =>
          connection.execute(sql, params as Array<string>)
    ]
  ])("RCH-09: %s writes with the commit, and nothing with a rollback", async (_, of) => {
    await transaction((connection) => outbox.writeAll(of(connection), [event("o-1"), event("o-2")]))
    const rolledBack = transaction(async (connection) => {
      await outbox.write(of(connection), event("o-3"))
      throw new Error("no stock")
    })
    await expect(rolledBack).rejects.toThrow("no stock")
    expect(await keys()).toEqual([stored("o-1"), stored("o-2")])
  })

  it("RCH-09: a pool, a connection that has not begun and one that has committed write nothing", async () => {
    const connection = await pool.getConnection()
    const refused = async (tx: OutboxTransaction) => {
      await expect(outbox.write(tx, event("o-1"))).rejects.toBeInstanceOf(OutboxError.NotInTransaction)
    }
    await refused(pool)
    await refused((sql, params) => pool.query(sql, [...params]))
    await refused(connection)
    await connection.beginTransaction()
    await connection.commit()
    await refused(connection)
    connection.release()
    expect(await keys()).toEqual([])
  })
})
