import { Context, Effect, Layer, Schema } from "effect"

export class BankUnavailable extends Schema.TaggedError<BankUnavailable>()("BankUnavailable", {
  bank: Schema.String
}) {
  override get message(): string {
    return `bank ${this.bank} does not answer`
  }
}

/** The service that the handler requires. A program provides a real one. */
export class PaymentGateway extends Context.Service<
  PaymentGateway,
  {
    readonly charge: (bank: string, amount: number) => Effect.Effect<void, BankUnavailable>
  }
>()("PaymentGateway") {
  /** A fake whose bank `south` never answers. */
  static readonly layer = Layer.succeed(PaymentGateway, {
    charge: (bank) => (bank === "south" ? Effect.fail(new BankUnavailable({ bank })) : Effect.void)
  })
}
