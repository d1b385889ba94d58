/** OPS-18: a command by `--url` on a network that loses answers. */
import { assert, describe, it } from "@effect/vitest"
import type { AdminWeb } from "@eventbus/admin"
import { Effect } from "effect"
import { start, token } from "../../admin/test/api.ts"
import { withToken } from "./eventbus.ts"
import { served } from "./served.ts"

/** The API on a socket that loses the answers to the first POSTs, once their work is done; and the key of each POST. */
const losing = Effect.fnUntraced(function* ({ nodeListener }: AdminWeb.AdminWeb, losses: number) {
  const keys: Array<unknown> = []
  const url = yield* served({
    nodeListener: (request, response) => {
      if (request.method === "POST" && keys.push(request.headers["idempotency-key"]) <= losses) {
        response.writeHead = () => {
          request.socket.destroy()
          return response
        }
      }
      nodeListener(request, response)
    }
  })
  return { url, keys }
})

const pause = (url: string) => withToken(token, "pause", "orders", "--reason", "INC-1204", "--url", url)

describe("eventbus --url and lost answers", () => {
  it.live("OPS-18 OPS-22 a command whose answer got lost is sent again with its key, and happens once", () =>
    Effect.gen(function* () {
      const { web } = yield* start()
      const { url, keys } = yield* losing(web, 2)
      const paused = yield* pause(url)
      assert.deepStrictEqual([paused.code, paused.err], [0, ""])
      assert.match(paused.out, /^default:orders {2}PAUSED \(operator\)/)
      assert.deepStrictEqual(keys, [keys[0], keys[0], keys[0]])
      // Another command has another key, and so the process does not take it for the first one.
      assert.strictEqual((yield* pause(url)).code, 1)
      assert.deepStrictEqual([keys.length, new Set(keys).size], [4, 2])
    })
  )

  it.live("OPS-18 a command that gets no answer three times says so", () =>
    Effect.gen(function* () {
      const { web } = yield* start()
      const { url, keys } = yield* losing(web, 9)
      const { code, out, err } = yield* pause(url)
      assert.notStrictEqual(code, 0)
      assert.deepStrictEqual([out, keys.length, new Set(keys).size], ["", 3, 1])
      assert.include(err, "gives no answer of the admin API")
    })
  )
})
