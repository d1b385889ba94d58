/** Handlers for `eventbus run`: they charge amounts within the limit, and log it. */
import { Application } from "@eventbus/cli"
import { Handler, Handlers } from "@eventbus/config"
import { LetterTransform, Serde } from "@eventbus/core"
import { Console, Context, Effect, Layer, Schema } from "effect"

class TooMuch extends Schema.TaggedError<TooMuch>()("TooMuch", { cents: Schema.Int }) {}

class Till extends Context.Service<Till, { readonly limit: number }>()("Till") {
  static readonly layer = Layer.succeed(Till, { limit: 1_000 })
  static readonly dryRun = Layer.succeed(Till, { limit: 5_000 })
}

const Order = Schema.Struct({ cents: Schema.Int })
const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Order))

const charge = Handler.make({
  value: Serde.json(Order),
  transforms: {
    /** Orders of 10 times the limit and more stay for a person. */
    cap: ({ value }) =>
      decode(new TextDecoder().decode(value ?? new Uint8Array())).pipe(
        Effect.mapError(({ message }) => new LetterTransform.Skip({ reason: message })),
        Effect.flatMap(({ cents }) =>
          cents < 10_000
            ? Effect.succeed({ value: { cents: 1_000 } })
            : Effect.fail(new LetterTransform.Skip({ reason: "a large order" }))
        )
      )
  },
  handler: ({ value: { cents } }) =>
    Till.use(({ limit }) => (cents > limit ? Effect.fail(new TooMuch({ cents })) : Console.log(`charged ${cents}`)))
})

export default Application.make({ handlers: Handlers.make({ charge }), layer: Till.layer, dryRun: Till.dryRun })
