export * as Avro from "./Avro.ts"
export * as SchemaRegistry from "./SchemaRegistry.ts"
export * as UnusableSchema from "./UnusableSchema.ts"
