/** The task of the consumer's process, and the topic of both sides. */
import { Topic } from "@eventbus/messaging"
import { Schema } from "effect"

const Task = Schema.Struct({
  host: Schema.String,
  username: Schema.String,
  password: Schema.String,
  vhost: Schema.String,
  prefix: Schema.String,
  journal: Schema.String
})

export const taskOf = Schema.decodeSync(Schema.fromJsonString(Task))
export const textOf = Schema.encodeSync(Schema.fromJsonString(Task))

export const numbers = Topic.json("numbers", Schema.Struct({ number: Schema.Int }))
