/** JSON that a schema of the Standard Schema checks: Zod, Valibot, ArkType, Effect's `Schema.toStandardSchemaV1`. */
import { Serde } from "@eventbus/core"
import * as Result from "effect/Result"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as StandardCheck from "./internal/standardCheck.ts"

/**
 * A serde of JSON in UTF-8 whose values a schema checks. Reading gives what the schema makes of the JSON, transformations included. A value that the schema refuses is a
 * `DecodeFailure` that names each problem with its path: its record goes to the dead letter topic, and the handler never sees it. Writing refuses a value whose JSON the schema
 * does not read again, with an `EncodeFailure`. A schema that answers with a promise is refused: such a check belongs into the handler.
 *
 * ```ts
 * import { consumer, Serde, standardSchema } from "@eventbus/node"
 * import { z } from "zod"
 *
 * const Order = z.object({ id: z.string(), cents: z.int() })
 *
 * export const orders = consumer({
 *   topic: "orders",
 *   groupId: "billing",
 *   key: Serde.string,
 *   value: standardSchema(Order),
 *   handler: async ({ value }) => console.log(value.id, value.cents)
 * })
 * ```
 */
export const standardSchema = <I, A>(schema: StandardSchemaV1<I, A>): Serde.Serde<A> => {
  const name = `json(${schema["~standard"].vendor})`
  const check = StandardCheck.make(schema)
  return {
    name,
    decode: (bytes) => {
      if (bytes === null)
        return Result.fail(
          StandardCheck.failure(
            Serde.DecodeFailure,
            name,
            "null arrived: a tombstone, or a record without a key; use Serde.nullable"
          )
        )
      try {
        return Result.succeed(check(parse(bytes)))
      } catch (thrown) {
        return Result.fail(StandardCheck.failure(Serde.DecodeFailure, name, thrown))
      }
    },
    encode: (value) => {
      try {
        const text = JSON.stringify(value)
        if (text === undefined) throw new TypeError(`${typeof value} has no JSON`)
        check(JSON.parse(text))
        return Result.succeed(encoder.encode(text))
      } catch (thrown) {
        return Result.fail(StandardCheck.failure(Serde.EncodeFailure, name, thrown))
      }
    }
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })

const parse = (bytes: Uint8Array): unknown => {
  if (bytes.length === 0) throw new Error("zero bytes are not JSON")
  return JSON.parse(decoder.decode(bytes))
}
