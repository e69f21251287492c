CREATE TABLE IF NOT EXISTS orders (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer text NOT NULL,
  amount bigint NOT NULL CHECK (amount > 0), -- in cents
  note text NOT NULL,
  charge text -- the bank's number; NULL until the bank was charged
);

-- One row for each charge. No constraint keeps a charge from being booked twice: only
-- Reprise does.
CREATE TABLE IF NOT EXISTS bookings (
  order_id bigint NOT NULL REFERENCES orders,
  charge text NOT NULL,
  amount bigint NOT NULL
);
