/**
 * Serdes for Protobuf in the wire format of a schema registry, in which each record names its `.proto` file and its message in that file. Messages are those of
 * [Protobuf-ES](https://github.com/bufbuild/protobuf-es), which generates them from `.proto` files.
 *
 * The schema of a new id is fetched before the record is handed over. The record's partition waits for it, however long the registry is unavailable. An unknown id, and bytes of another
 * message, are a `DecodeFailure`: the record is dead-lettered with its bytes.
 */
import { type DescMessage, fromBinary, isMessage, type MessageShape, toBinary } from "@bufbuild/protobuf"
import { Serde } from "@eventbus/core"
import { RegistrySerde, SchemaRegistry, type UnusableSchema } from "@eventbus/schema-registry"
import * as Effect from "effect/Effect"
import * as Descriptors from "./internal/descriptors.ts"
import * as MessageIndexes from "./internal/messageIndexes.ts"
import * as MessageTree from "./internal/messageTree.ts"

/** How to read and write messages. */
export interface Options extends RegistrySerde.WriteOptions {
  /**
   * The text of the `.proto` file, to be found or registered under `subject`. Default: the descriptor in the generated code, in Base64, which Confluent's registry takes for
   * the same schema. A registry that does not know this form needs the text.
   */
  readonly schema?: string
  /**
   * The registered schemas of the files that the file imports, when it is registered. Default: each imported file is found, or with `register` registered, under its path as the
   * subject, as Confluent's serializers do. Those of `google/protobuf`, `google/type` and `confluent` need none.
   */
  readonly references?: ReadonlyArray<SchemaRegistry.Reference>
  /** Further full names that writers have for the message, such as its name before its package was renamed. Default none. */
  readonly aliases?: ReadonlyArray<string>
}

/**
 * A serde of a message: `OrderSchema` of the generated code. Fields that the generated code does not know are kept, and written again. Fails with `UnusableSchema` when the registry
 * does not have the schema under `subject`.
 */
export const serde = Effect.fnUntraced(function* <Message extends DescMessage>(
  message: Message,
  options: Options = {}
): Effect.fn.Return<Serde.Serde<MessageShape<Message>>, UnusableSchema.UnusableSchema, SchemaRegistry.SchemaRegistry> {
  const registry = yield* SchemaRegistry.SchemaRegistry
  const { subject, aliases = [] } = options
  const names = new Set([message.typeName, ...aliases])
  const writerId =
    subject === undefined
      ? undefined
      : yield* registry.idOf({
          ...options,
          subject,
          schema: options.schema ?? Descriptors.textOf(message.file),
          type: "PROTOBUF",
          references: options.references ?? (yield* Descriptors.referencesOf(registry, message.file, options))
        })
  const { decode, frame, prepare } = RegistrySerde.make(registry, {
    type: "PROTOBUF",
    readerOf: ({ schema }) => {
      const file = MessageTree.parse(schema)
      return (bytes) => {
        const { indexes, body } = MessageIndexes.read(bytes)
        const name = MessageTree.nameOf(file, indexes)
        if (!names.has(name)) throw new Error(`expected the message ${message.typeName}, found ${name}`)
        return fromBinary(message, body)
      }
    },
    writerId
  })
  const indexes = MessageIndexes.write(Descriptors.indexesOf(message))
  return {
    ...Serde.make({
      name: "protobuf",
      decode: (bytes) => decode(bytes) as MessageShape<Message>,
      encode: (value) => {
        if (!isMessage(value, message)) throw new TypeError(notTheMessage(message, value))
        return frame(MessageIndexes.before(indexes, toBinary(message, value)))
      }
    }),
    prepare
  }
})

const notTheMessage = ({ typeName, name }: DescMessage, value: unknown): string => {
  const found = isMessage(value) ? `a ${value.$typeName}` : `a value of type ${value === null ? "null" : typeof value}`
  return `expected a message ${typeName}, found ${found}; make it by create(${name}Schema, { ... })`
}
