export const cents = (amount: number) => Math.round(amount * 100)
