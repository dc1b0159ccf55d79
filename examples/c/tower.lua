-- The tower of Hanoi. Each move is yielded from as deep in the recursion as it is made; the tables, closures and strings
-- that lead to it are what has to survive.
local pegs = { a = {}, b = {}, c = {} }
for disc = 10, 1, -1 do
    pegs.a[#pegs.a + 1] = disc
end

local history = setmetatable({}, { __call = function(self, text) self[#self + 1] = text return #self end })

local function show()
    return table.concat(pegs.a, " ") .. "|" .. table.concat(pegs.b, " ") .. "|" .. table.concat(pegs.c, " ")
end

-- A coroutine within the coroutine, which is in the middle of its loop all the time.
local count = coroutine.wrap(function()
    local n = 0
    while true do
        n = n + 1
        coroutine.yield(n)
    end
end)

local function move(discs, from, to, over)
    if discs == 0 then
        return
    end
    move(discs - 1, from, over, to)
    local disc = table.remove(pegs[from])
    pegs[to][#pegs[to] + 1] = disc
    local number = history(string.format("%d: %s to %s", disc, from, to))
    assert(number == count(), "the inner coroutine lost its place")
    coroutine.yield(history[number] .. " " .. show())
    move(discs - 1, over, to, from)
end

move(#pegs.a, "a", "c", "b")
