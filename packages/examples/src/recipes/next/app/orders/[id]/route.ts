import { service } from "../../../service.ts"

interface Context {
  readonly params: Promise<{ readonly id: string }>
}

export const POST = async (_: Request, { params }: Context): Promise<Response> => {
  const { bus, orders } = await service()
  await bus.publish(orders, { key: "ann", value: { id: (await params).id } })
  return new Response(null, { status: 202 })
}
