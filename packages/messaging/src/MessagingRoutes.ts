/**
 * Endpoints in the form of Spring's Actuator, as routes of the program's router. They need no credentials: publish them to operators alone, since
 * they name brokers and topics.
 */
import type { Broker } from "@eventbus/core/Broker"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as ActuatorMetrics from "./internal/actuatorMetrics.ts"
import * as KafkaHealth from "./KafkaHealth.ts"

/** Where the routes are. */
export interface Options {
  /** In front of `/kafka` and `/metrics`. Default `/actuator`. */
  readonly prefix?: `/${string}`
}

/**
 * Adds `GET {prefix}/kafka`, the answer of `KafkaHealth.checkHealth` (status 200 when UP, 503 when DOWN); `GET {prefix}/metrics`, the names of the metrics of messages; and
 * `GET {prefix}/metrics/{name}`, their values as Actuator shows them, also for `?tag=topic:orders`; a `*` at the end of a name lists all that begin like it. A known
 * name without a value answers 0; a name that no metric has is 404.
 */
export const layer = ({
  prefix = "/actuator"
}: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | Broker> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const health = Effect.provideContext(KafkaHealth.checkHealth, yield* Effect.context<Broker>())
      yield* router.add(
        "GET",
        `${prefix}/kafka`,
        Effect.map(health, (answer) =>
          HttpServerResponse.jsonUnsafe(answer, { status: answer.status === "UP" ? 200 : 503 })
        )
      )
      yield* router.add(
        "GET",
        `${prefix}/metrics`,
        Effect.map(Metric.snapshot, (all) => HttpServerResponse.jsonUnsafe({ names: ActuatorMetrics.names(all) }))
      )
      yield* router.add(
        "GET",
        `${prefix}/metrics/:name`,
        Effect.gen(function* () {
          const { name = "" } = yield* HttpRouter.params
          const { tag = [] } = yield* HttpServerRequest.ParsedSearchParams
          const answer = ActuatorMetrics.answer(yield* Metric.snapshot, name, typeof tag === "string" ? [tag] : tag)
          return answer === undefined
            ? HttpServerResponse.jsonUnsafe({ error: `There is no metric '${name}' with these tags` }, { status: 404 })
            : HttpServerResponse.jsonUnsafe(answer)
        })
      )
    })
  )
