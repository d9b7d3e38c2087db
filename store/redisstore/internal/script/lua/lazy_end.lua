  return rawget(rows, code)
end})
