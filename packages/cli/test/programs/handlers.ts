/** Handlers for `eventbus run`: they charge amounts within the limit, and log it. */
import { Application } from "@eventbus/cli"
import { Handler, Handlers } from "@eventbus/config"
import { Serde } from "@eventbus/core"
import { Console, Context, Effect, Layer, Schema } from "effect"

class TooMuch extends Schema.TaggedError<TooMuch>()("TooMuch", { cents: Schema.Int }) {}

class Till extends Context.Service<Till, { readonly limit: number }>()("Till") {
  static readonly layer = Layer.succeed(Till, { limit: 1_000 })
  static readonly dryRun = Layer.succeed(Till, { limit: 5_000 })
}

const charge = Handler.make({
  value: Serde.json(Schema.Struct({ cents: Schema.Int })),
  handler: ({ value: { cents } }) =>
    Till.use(({ limit }) => (cents > limit ? Effect.fail(new TooMuch({ cents })) : Console.log(`charged ${cents}`)))
})

export default Application.make({ handlers: Handlers.make({ charge }), layer: Till.layer, dryRun: Till.dryRun })
