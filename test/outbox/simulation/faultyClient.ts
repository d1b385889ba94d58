/** A node's view of the database: statements that may fail, take effect without an answer, or find the node dead. */
import { Effect } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import type { Random } from "./random.ts"

/** The state of a node. Its listeners read it too. */
export interface NodeState {
  readonly name: string
  /** Crashed: nothing of it has an effect any more. */
  dead: boolean
  /** Cut off from the database, while its listeners go on. */
  cutOff: boolean
}

export interface FaultRates {
  readonly crash: number
  readonly fail: number
  readonly loseAnswer: number
}

const broken = (detail: string) =>
  new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error(detail), message: detail }) })

/** The client for one node. `onFault` is told of everything that goes wrong, so that a checker knows what explains a duplicate. */
export const faultyClient = (
  sql: SqlClient.SqlClient,
  node: NodeState,
  random: Random,
  rates: () => FaultRates,
  onFault: (what: string) => void,
  rewrite: (statement: string) => string = (statement) => statement
): SqlClient.SqlClient => {
  const gate = <A>(statement: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> =>
    Effect.suspend(() => {
      const { crash, fail, loseAnswer } = rates()
      if (node.dead || node.cutOff) return Effect.fail(broken("unreachable"))
      if (random.chance(crash)) {
        node.dead = true
        onFault("crash before a statement")
        return Effect.fail(broken("crashed"))
      }
      if (random.chance(fail)) {
        onFault("statement failed")
        return Effect.fail(broken("failed"))
      }
      return Effect.flatMap(statement, (answer) => {
        if (random.chance(crash)) {
          node.dead = true
          onFault("crash after a statement")
          return Effect.fail(broken("crashed"))
        }
        if (random.chance(loseAnswer)) {
          onFault("answer lost")
          return Effect.fail(broken("answer lost"))
        }
        return Effect.succeed(answer)
      })
    })
  return new Proxy(sql, {
    get: (target, key, receiver) => {
      if (key !== "unsafe") return Reflect.get(target, key, receiver)
      return (text: string, params?: ReadonlyArray<unknown>) => {
        const statement = target.unsafe(rewrite(text), params)
        const { raw, unprepared, values, withoutTransform } = statement
        return Object.assign(gate(statement), {
          ...{ raw: gate(raw), unprepared: gate(unprepared) },
          ...{ values: gate(values), withoutTransform: gate(withoutTransform) }
        })
      }
    }
  })
}
