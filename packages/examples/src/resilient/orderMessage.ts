import { Schema } from "effect"

/** The messages of topic `orders`: JSON, or Avro where `appsettings.json` has a `SchemaRegistryUrl`. */
export class OrderMessage extends Schema.Class<OrderMessage>("OrderMessage")({
  orderId: Schema.String,
  bank: Schema.String,
  /** In cents. */
  amount: Schema.Int
}) {}
